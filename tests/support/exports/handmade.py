"""Models that exporters of other frameworks write, or nobody but a person does."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from support.exports.exporting import Export
from support.onnx_models import build_model, floats

_RNG_SEED = 0
_LEARNED = "ai.onnx.ml"
_FUSED = "com.microsoft"
node = helper.make_node


def exports() -> Iterator[Export]:
    """One of each kind, by the name of its function; open dimensions are 3."""
    for make in (
        _tree, _classifier, _support_vectors, _sequences, _optional, _suppressed_boxes, _branch_of_captures,
        _loop_of_captures, _scan, _function, _fused, _einsum, _scattered, _old_network, _masked_attention,
        _image_of_bytes, _resized, _twice_the_same_weight, _low_precision, _four_bits, _statistics_of_a_norm,
        _unpooled, _overridable_input, _nothing_but_constants, _nothing_at_all, _scalars,
    ):  # fmt: skip
        model = make(np.random.default_rng(_RNG_SEED))
        sizes = {d.dim_param: 3 for i in model.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}
        yield Export(make.__name__.lstrip("_"), model, sizes)


def _drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, np.float32)


def _value(name: str, element: int, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def _in_domain(
    nodes: list[onnx.NodeProto], inputs: list[Any], outputs: list[Any], domain: str, version: int, **fields: Any
) -> onnx.ModelProto:
    model = build_model(nodes, inputs, outputs, domains=[domain], **fields)
    model.opset_import[-1].version = version
    return model


def _tree(rng: np.random.Generator) -> onnx.ModelProto:
    trees = node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain=_LEARNED, n_targets=1, nodes_falsenodeids=[2, 0, 0],
        nodes_featureids=[1, 0, 0], nodes_hitrates=[1.0] * 3, nodes_missing_value_tracks_true=[0] * 3,
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_nodeids=[0, 1, 2], nodes_treeids=[0] * 3,
        nodes_truenodeids=[1, 0, 0], nodes_values=[0.1, 0.0, 0.0], post_transform="NONE", target_ids=[0, 0],
        target_nodeids=[1, 2], target_treeids=[0, 0], target_weights=[1.5, -2.0],
    )  # fmt: skip
    nodes = [node("Mul", ["z", "s"], ["x"]), trees, node("Add", ["y", "s"], ["a"]), node("Mul", ["a", "s"], ["o"])]
    weights = {"s": np.float32(2)}
    return _in_domain(nodes, [floats("z", "n", 3)], [floats("o", "n", 1)], _LEARNED, 3, weights=weights)


def _classifier(rng: np.random.Generator) -> onnx.ModelProto:
    """As scikit-learn's converter writes it: labels, and a list of maps from each label to its probability."""
    nodes = [
        node("Scaler", ["x"], ["s"], domain=_LEARNED, offset=[0.1, 0.2, 0.3], scale=[1.0, 2.0, 3.0]),
        node(
            "LinearClassifier", ["s"], ["label", "scores"], domain=_LEARNED, intercepts=[0.1, -0.1],
            coefficients=[0.1, 0.2, 0.3, -0.1, -0.2, -0.3], classlabels_ints=[0, 1], post_transform="SOFTMAX",
        ),
        node("Normalizer", ["scores"], ["p"], domain=_LEARNED, norm="L1"),
        node("ZipMap", ["p"], ["probabilities"], domain=_LEARNED, classlabels_int64s=[0, 1]),
    ]  # fmt: skip
    each = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    maps = helper.make_value_info("probabilities", helper.make_sequence_type_proto(each))
    outputs = [_value("label", TensorProto.INT64, "n"), maps]
    return _in_domain(nodes, [floats("x", "n", 3)], outputs, _LEARNED, 1, opset=9, ir_version=4)


def _support_vectors(rng: np.random.Generator) -> onnx.ModelProto:
    machine = node(
        "SVMRegressor", ["x"], ["y"], domain=_LEARNED, coefficients=[0.5, -0.5], kernel_params=[0.1, 0.0, 3.0],
        kernel_type="RBF", n_supports=2, post_transform="NONE", rho=[0.1],
        support_vectors=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
    )  # fmt: skip
    return _in_domain([machine], [floats("x", "n", 3)], [floats("y", "n", 1)], _LEARNED, 1, opset=12, ir_version=6)


def _sequences(rng: np.random.Generator) -> onnx.ModelProto:
    nodes = [
        node("SplitToSequence", ["x", "parts"], ["s"], axis=1),
        node("SequenceAt", ["s", "zero"], ["a"]),
        node("SequenceAt", ["s", "one"], ["b"]),
        node("Add", ["a", "b"], ["c"]),
        node("SequenceConstruct", ["c", "a"], ["t"]),
        node("SequenceInsert", ["t", "b"], ["u"]),
        node("ConcatFromSequence", ["u"], ["y"], axis=0),
        node("SequenceLength", ["u"], ["length"]),
    ]
    listed = helper.make_tensor_sequence_value_info("u", TensorProto.FLOAT, ["k", 3])
    weights = {"parts": np.array([3, 3]), "zero": np.array(0), "one": np.array(1)}
    outputs = [floats("y", 6, 3), _value("length", TensorProto.INT64), listed]
    return build_model(nodes, [floats("x", 2, 6)], outputs, weights=weights)


def _optional(rng: np.random.Generator) -> onnx.ModelProto:
    nodes = [
        node("Optional", ["x"], ["o"]),
        node("OptionalHasElement", ["o"], ["has"]),
        node("OptionalGetElement", ["o"], ["e"]),
        node("Relu", ["e"], ["y"]),
    ]
    return build_model(nodes, [floats("x", 2, 3)], [floats("y", 2, 3), _value("has", TensorProto.BOOL)], opset=18)


def _suppressed_boxes(rng: np.random.Generator) -> onnx.ModelProto:
    nodes = [
        node("Conv", ["x", "w", "c"], ["features"], pads=[1] * 4),
        node("Reshape", ["features", "flat"], ["r"]),
        node("Split", ["r"], ["sides", "scores"], axis=1),
        node("Transpose", ["sides"], ["boxes"], perm=[0, 2, 1]),
        node("Sigmoid", ["scores"], ["p"]),
        node("NonMaxSuppression", ["boxes", "p", "most", "overlap", "least"], ["kept"]),
        node("Gather", ["kept", "two"], ["places"], axis=1),
        node("Squeeze", ["boxes", "zero"], ["all"]),
        node("Gather", ["all", "places"], ["y"]),
    ]
    weights = {
        "w": _drawn(rng, 8, 3, 3, 3), "c": _drawn(rng, 8), "flat": np.array([1, 8, 64]), "most": np.array([5]),
        "overlap": np.array([0.5], np.float32), "least": np.array([0.3], np.float32), "two": np.array(2),
        "zero": np.array([0]),
    }  # fmt: skip
    outputs = [_value("kept", TensorProto.INT64, "k", 3), floats("y", "k", 4)]
    return build_model(nodes, [floats("x", 1, 3, 8, 8)], outputs, weights=weights, opset=13)


def _branch_of_captures(rng: np.random.Generator) -> onnx.ModelProto:
    product = [node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "shifted"], ["then"])]
    scaled = [node("Mul", ["x", "shifted"], ["s"]), node("Relu", ["s"], ["else"])]
    nodes = [
        node("Add", ["x", "k"], ["shifted"]),
        node("ReduceSum", ["x"], ["total"], keepdims=0),
        node("Greater", ["total", "zero"], ["is_large"]),
        node(
            "If", ["is_large"], ["y"],
            then_branch=helper.make_graph(product, "then", [], [floats("then", 2, 4)]),
            else_branch=helper.make_graph(scaled, "else", [], [floats("else", 2, 4)]),
        ),
        node("Mul", ["y", "k"], ["z"]),
    ]  # fmt: skip
    weights = {"k": _drawn(rng, 4), "zero": np.float32(0), "w": _drawn(rng, 4, 4)}
    return build_model(nodes, [floats("x", 2, 4)], [floats("z", 2, 4), floats("shifted", 2, 4)], weights=weights)


def _loop_of_captures(rng: np.random.Generator) -> onnx.ModelProto:
    """Of a transposed weight and a sum of weights, which are constants outside."""
    body = helper.make_graph(
        [
            node("MatMul", ["h", "turned"], ["m"]),
            node("Add", ["m", "bias"], ["a"]),
            node("Tanh", ["a"], ["next"]),
            node("Identity", ["goes_on"], ["still"]),
            node("Identity", ["next"], ["seen"]),
        ],
        "body",
        [_value("step", TensorProto.INT64), _value("goes_on", TensorProto.BOOL), floats("h", 2, 4)],
        [_value("still", TensorProto.BOOL), floats("next", 2, 4), floats("seen", 2, 4)],
    )
    nodes = [
        node("Transpose", ["w"], ["turned"]),
        node("Add", ["b", "c"], ["bias"]),
        node("Loop", ["steps", "yes", "x"], ["last", "all"], body=body),
        node("Mul", ["last", "b"], ["y"]),
    ]
    weights = {
        "w": _drawn(rng, 4, 4), "b": _drawn(rng, 4), "c": _drawn(rng, 4), "steps": np.array(3), "yes": np.array(True),
    }  # fmt: skip
    return build_model(nodes, [floats("x", 2, 4)], [floats("y", 2, 4), floats("all", "k", 2, 4)], weights=weights)


def _scan(rng: np.random.Generator) -> onnx.ModelProto:
    body = helper.make_graph(
        [node("Add", ["state", "each"], ["next"]), node("Mul", ["next", "twice"], ["seen"])],
        "body",
        [floats("state", 4), floats("each", 4)],
        [floats("next", 4), floats("seen", 4)],
    )
    nodes = [
        node("Add", ["w", "w"], ["twice"]),
        node("Scan", ["start", "x"], ["last", "y"], num_scan_inputs=1, body=body),
    ]
    weights = {"w": _drawn(rng, 4), "start": np.zeros(4, np.float32)}
    return build_model(nodes, [floats("x", 5, 4)], [floats("last", 4), floats("y", 5, 4)], weights=weights)


def _function(rng: np.random.Generator) -> onnx.ModelProto:
    body = [
        node("Constant", [], ["two"], value_float=2.0),
        node("Mul", ["x", "two"], ["s"]),
        node("Erf", ["s"], ["y"]),
    ]
    own = helper.make_function("own", "Activated", ["x"], ["y"], body, [helper.make_opsetid("", 17)])
    nodes = [
        node("MatMul", ["x", "w"], ["m"]),
        node("Add", ["m", "b"], ["a"]),
        node("Activated", ["a"], ["h"], domain="own"),
        node("MatMul", ["h", "w"], ["y"]),
    ]
    weights = {"w": _drawn(rng, 8, 8), "b": _drawn(rng, 8)}
    return build_model(
        nodes, [floats("x", "n", 8)], [floats("y", "n", 8)], weights=weights, domains=["own"], functions=[own]
    )


def _fused(rng: np.random.Generator) -> onnx.ModelProto:
    """As ONNX Runtime's own optimiser for transformers leaves a model."""
    nodes = [
        node("MatMul", ["x", "w"], ["m"]),
        node("BiasGelu", ["m", "b"], ["g"], domain=_FUSED),
        node("SkipLayerNormalization", ["g", "x", "b", "b"], ["n", "", "", "sum"], domain=_FUSED, epsilon=1e-5),
        node("FastGelu", ["n"], ["f"], domain=_FUSED),
        node("Add", ["f", "sum"], ["a"]),
        node("FusedMatMul", ["a", "w"], ["y"], domain=_FUSED, transB=1, alpha=0.5),
    ]
    weights = {"w": _drawn(rng, 8, 8), "b": _drawn(rng, 8)}
    return build_model(nodes, [floats("x", 2, 3, 8)], [floats("y", 2, 3, 8)], weights=weights, domains=[_FUSED])


def _einsum(rng: np.random.Generator) -> onnx.ModelProto:
    nodes = [
        node("Einsum", ["x", "w"], ["a"], equation="bij,jk->bik"),
        node("Einsum", ["a", "a"], ["s"], equation="bik,bjk->bij"),
        node("Softmax", ["s"], ["p"], axis=-1),
        node("MatMul", ["p", "x"], ["y"]),
    ]
    return build_model(nodes, [floats("x", 2, 3, 4)], [floats("y", 2, 3, 4)], weights={"w": _drawn(rng, 4, 5)})


def _scattered(rng: np.random.Generator) -> onnx.ModelProto:
    nodes = [
        node("CumSum", ["x", "one"], ["c"]),
        node("ScatterElements", ["c", "places", "updates"], ["s"], axis=1),
        node("OneHot", ["classes", "three", "off_on"], ["chosen"]),
        node("MatMul", ["chosen", "s"], ["y"]),
    ]
    weights = {
        "one": np.array(1), "places": np.array([[0, 1]]), "updates": _drawn(rng, 1, 2), "three": np.array(3),
        "off_on": np.array([0, 1], np.float32),
    }  # fmt: skip
    inputs = [floats("x", 3, 4), _value("classes", TensorProto.INT64, 3)]
    return build_model(nodes, inputs, [floats("y", 3, 4)], weights=weights)


def _old_network(rng: np.random.Generator) -> onnx.ModelProto:
    """As Caffe's converter wrote them in 2018."""
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"),
        node("Relu", ["c"], ["r"]),
        node("LRN", ["r"], ["l"], size=3),
        node("MaxPool", ["l"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Dropout", ["p"], ["d"], ratio=0.5),
        node("Flatten", ["d"], ["f"]),
        node("Gemm", ["f", "v", "h"], ["s"], transB=1),
        node("Softmax", ["s"], ["y"]),
    ]
    weights = {"w": _drawn(rng, 4, 3, 3, 3), "b": _drawn(rng, 4), "v": _drawn(rng, 10, 64), "h": _drawn(rng, 10)}
    return build_model(nodes, [floats("x", 1, 3, 16, 16)], [floats("y", 1, 10)], weights=weights, opset=9, ir_version=4)


def _masked_attention(rng: np.random.Generator) -> onnx.ModelProto:
    nodes = [
        node("Cast", ["padding"], ["m"], to=TensorProto.FLOAT),
        node("Sub", ["one", "m"], ["hidden"]),
        node("Mul", ["hidden", "low"], ["bias"]),
        node("MatMul", ["q", "k"], ["s"]),
        node("Add", ["s", "bias"], ["t"]),
        node("Softmax", ["t"], ["p"], axis=-1),
        node("MatMul", ["p", "v"], ["y"]),
    ]
    inputs = [floats("q", 2, 3, 4), floats("k", 2, 4, 3), floats("v", 2, 3, 4)]
    inputs.append(_value("padding", TensorProto.INT64, 2, 1, 3))
    weights = {"one": np.float32(1), "low": np.float32(-1e9)}
    return build_model(nodes, inputs, [floats("y", 2, 3, 4)], weights=weights)


def _image_of_bytes(rng: np.random.Generator) -> onnx.ModelProto:
    """With what prepares it: rows of pixels, not normalised."""
    nodes = [
        node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        node("Transpose", ["f"], ["t"], perm=[0, 3, 1, 2]),
        node("Sub", ["t", "mean"], ["u"]),
        node("Div", ["u", "spread"], ["v"]),
        node("Conv", ["v", "w"], ["y"]),
    ]
    mean, spread = np.array([123, 117, 104], np.float32), np.array([58, 57, 57], np.float32)
    weights = {"mean": mean.reshape(1, 3, 1, 1), "spread": spread.reshape(1, 3, 1, 1), "w": _drawn(rng, 4, 3, 3, 3)}
    pixels = _value("x", TensorProto.UINT8, 1, 8, 8, 3)
    return build_model(nodes, [pixels], [floats("y", 1, 4, 6, 6)], weights=weights)


def _resized(rng: np.random.Generator) -> onnx.ModelProto:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Slice", ["s", "zero", "two"], ["kept"]),
        node("Concat", ["kept", "wanted"], ["sizes"], axis=0),
        node("Resize", ["x", "", "", "sizes"], ["r"], mode="linear"),
        node("Conv", ["r", "w"], ["c"], pads=[1] * 4),
        node("Relu", ["c"], ["y"]),
    ]
    weights = {
        "zero": np.array([0]), "two": np.array([2]), "wanted": np.array([16, 16]), "w": _drawn(rng, 4, 3, 3, 3),
    }  # fmt: skip
    return build_model(nodes, [floats("x", "n", 3, "h", "w")], [floats("y", "n", 4, 16, 16)], weights=weights)


def _twice_the_same_weight(rng: np.random.Generator) -> onnx.ModelProto:
    nodes = [node("MatMul", ["x", "v"], ["a"]), node("MatMul", ["x", "w"], ["b"]), node("Add", ["a", "b"], ["y"])]
    weight = _drawn(rng, 4, 4)
    weights = {"v": weight, "w": weight, "unread": _drawn(rng, 3)}
    return build_model(nodes, [floats("x", 2, 4)], [floats("y", 2, 4)], weights=weights)


def _low_precision(rng: np.random.Generator) -> onnx.ModelProto:
    """Through eight bits and through sixteen, of both of which numpy knows nothing."""
    nodes = [
        node("Cast", ["x"], ["e"], to=TensorProto.FLOAT8E4M3FN),
        node("Cast", ["e"], ["f"], to=TensorProto.FLOAT),
        node("Cast", ["f"], ["h"], to=TensorProto.BFLOAT16),
        node("Cast", ["h"], ["g"], to=TensorProto.FLOAT),
        node("MatMul", ["g", "w"], ["m"]),
        node("Mul", ["m", "two"], ["y"]),
    ]
    weights = {"w": _drawn(rng, 4, 4), "two": np.float32(2)}
    return build_model(nodes, [floats("x", 2, 4)], [floats("y", 2, 4)], weights=weights, opset=19)


def _four_bits(rng: np.random.Generator) -> onnx.ModelProto:
    nodes = [
        node("DequantizeLinear", ["packed", "step"], ["w"]),
        node("MatMul", ["x", "w"], ["m"]),
        node("Mul", ["m", "two"], ["y"]),
    ]
    packed = helper.make_tensor("packed", TensorProto.INT4, [4, 4], list(range(-8, 8)))
    weights = {"packed": packed, "step": np.float32(0.1), "two": np.float32(2)}
    return build_model(nodes, [floats("x", 2, 4)], [floats("y", 2, 4)], weights=weights, opset=21)


def _statistics_of_a_norm(rng: np.random.Generator) -> onnx.ModelProto:
    norm = node("LayerNormalization", ["x", "s", "b"], ["n", "mean", "inverse"])
    outputs = [floats("y", 2, 3, 8), floats("mean", 2, 3, 1)]
    weights = {"s": _drawn(rng, 8), "b": _drawn(rng, 8)}
    return build_model([norm, node("Mul", ["n", "inverse"], ["y"])], [floats("x", 2, 3, 8)], outputs, weights=weights)


def _unpooled(rng: np.random.Generator) -> onnx.ModelProto:
    nodes = [
        node("MaxPool", ["x"], ["p", "places"], kernel_shape=[2, 2], strides=[2, 2]),
        node("MaxUnpool", ["p", "places"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    return build_model(nodes, [floats("x", 1, 2, 8, 8)], [floats("y", 1, 2, 8, 8)])


def _overridable_input(rng: np.random.Generator) -> onnx.ModelProto:
    """A default that the caller may replace is no constant."""
    nodes = [node("MatMul", ["x", "w"], ["m"]), node("Mul", ["m", "scale"], ["y"])]
    weights = {"w": _drawn(rng, 4, 4), "scale": np.float32(2)}
    return build_model(nodes, [floats("x", 2, 4), floats("scale")], [floats("y", 2, 4)], weights=weights)


def _nothing_but_constants(rng: np.random.Generator) -> onnx.ModelProto:
    weights = {"a": _drawn(rng, 4), "b": _drawn(rng, 4)}
    return build_model([node("Add", ["a", "b"], ["y"])], [], [floats("y", 4)], weights=weights)


def _nothing_at_all(rng: np.random.Generator) -> onnx.ModelProto:
    return build_model([], [floats("x", 2)], [floats("x", 2)])


def _scalars(rng: np.random.Generator) -> onnx.ModelProto:
    nodes = [node("Mul", ["x", "k"], ["p"]), node("Add", ["p", "k"], ["y"])]
    return build_model(nodes, [floats("x")], [floats("y")], weights={"k": np.float32(3)})
