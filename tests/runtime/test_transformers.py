"""Every transformer does what its name says on a graph made for it, as ONNX Runtime ignores unknown names."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

from rlflow.equivalence.compare import compare
from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.transformers import TRANSFORMERS, transformed, transformed_by_level

BEHIND = "float[2,4] x) => (float[2,4] y) { p = Neg(x) "  # some remove nothing that reads an input
CONV = "float[1,2,6,6] x) => (float[1,3,4,4] y) { "
GELU = "a = Div(x, root) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half) }"
TANH_GELU = (
    "x3 = Pow(x, three) a = Mul(x3, small) b = Add(x, a) c = Mul(b, pi) t = Tanh(c) d = Add(t, one) "
    "e = Mul(x, half) f = Mul(e, d) y = Neg(f) }"
)
LAYER_NORM = (
    "m = ReduceMean <axes = [-1]> (x) d = Sub(x, m) q = Pow(d, two) v = ReduceMean <axes = [-1]> (q) w = Add(v, small) "
    "s = Sqrt(w) n = Div(d, s) g = Mul(n, row) y = Add(g, row) }"
)
COMPUTED = (
    "s = Shape(x) i = Constant <value_int = 0> () n = Gather(s, i) axes = Constant <value_ints = [0]> () "
    "u = Unsqueeze(n, axes) rest = Constant <value_ints = [-1]> () w = Concat <axis = 0> (u, rest) y = Reshape(x, w) }"
)
GRAPHS: dict[str, tuple[str, set[str]]] = {
    "BiasGeluFusion": ("float[2,4] x) => (float[2,4] y) { a = Add(x, row) y = com.microsoft.Gelu(a) }", {"BiasGelu"}),
    "CastElimination": ("float[2,4] x) => (float[2,4] y) { a = Cast <to = 1> (x) y = Relu(a) }", {"Relu"}),
    "CommonSubexpressionElimination": (
        "float[2,4] x) => (float[2,4] y) { a = Relu(x) b = Relu(x) y = Add(a, b) }",
        {"Relu", "Add"},
    ),
    "ConstantFolding": ("float[2,4] x) => (float[2,4] y) { a = Exp(row) y = Add(x, a) }", {"Add"}),
    "ConstantSharing": ("float[2,4] x) => (float[2,4] y) { a = Add(x, one) y = Mul(a, another_one) }", {"Add", "Mul"}),
    "ConvActivationFusion": (CONV + "a = Conv(x, filter) y = Relu(a) }", {"FusedConv"}),
    "ConvAddFusion": (CONV + "a = Conv(x, filter) y = Add(a, channels) }", {"Conv"}),
    "ConvBNFusion": (CONV + "a = Conv(x, filter) y = BatchNormalization(a, c3, c3, c3, c3) }", {"Conv"}),
    "ConvMulFusion": (CONV + "a = Conv(x, filter) y = Mul(a, channels) }", {"Conv"}),
    "EliminateDropout": ("float[2,4] x) => (float[2,4] y) { a = Dropout(x) y = Relu(a) }", {"Relu"}),
    "EliminateIdentity": ("float[2,4] x) => (float[2,4] y) { a = Identity(x) y = Relu(a) }", {"Relu"}),
    "FuseReluClip": ("float[2,4] x) => (float[2,4] y) { a = Relu(x) y = Clip(a, small, six) }", {"Clip"}),
    "GeluFusionL2": ("float[2,4] x) => (float[2,4] y) { " + GELU, {"Gelu"}),
    "GemmActivationFusion": ("float[2,4] x) => (float[2,4] y) { a = Gemm(x, square, row) y = Relu(a) }", {"FusedGemm"}),
    "GemmTransposeFusion": ("float[2,4] x) => (float[4,2] y) { a = Gemm(x, square) y = Transpose(a) }", {"Gemm"}),
    "LayerNormFusionL1": ("float[2,4] x) => (float[2,4] y) { " + LAYER_NORM, {"LayerNormalization"}),
    "MatMulAddFusion": ("float[2,4] x) => (float[2,4] y) { a = MatMul(x, square) y = Add(a, row) }", {"Gemm"}),
    "MatMulScaleFusion": (
        "float[2,4] x) => (float[2,4] y) { a = MatMul(x, square) y = Mul(a, half) }",
        {"FusedMatMul"},
    ),
    "MatmulTransposeFusion": (
        "float[2,4] x, float[2,4] z) => (float[2,2] y) { a = Transpose(z) y = MatMul(x, a) }",
        {"FusedMatMul"},
    ),
    "Pad_Fusion": (
        "float[1,2,4,4] x) => (float[1,3,4,4] y) { p = Constant <value_ints = [0, 0, 1, 1, 0, 0, 1, 1]> () "
        "a = Pad(x, p) y = Conv(a, filter) }",
        {"Conv"},
    ),
    "QuickGeluFusion": (
        "float[2,4] x) => (float[2,4] y) { a = Mul(x, six) s = Sigmoid(a) y = Mul(x, s) }",
        {"QuickGelu"},
    ),
    "ReshapeFusion": ("float[2,N,4] x) => (float[2,M] y) { " + COMPUTED, {"Reshape"}),
    "SkipLayerNormFusion": (
        "float[1,2,4] x, float[1,2,4] z) => (float[1,2,4] y) { a = Add(x, z) y = LayerNormalization(a, row, row) }",
        {"SkipLayerNormalization"},
    ),
    "EliminateSlice": (BEHIND + "a = Slice(p, start, end, start) y = Relu(a) }", {"Neg", "Relu"}),
    "ExpandElimination": (BEHIND + "a = Expand(p, ones) y = Relu(a) }", {"Neg", "Relu"}),
    "FastGeluFusion": ("float[2,4] x) => (float[2,4] y) { " + TANH_GELU, {"Neg", "FastGelu"}),
    "NoopElimination": (BEHIND + "a = Mul(p, one) y = Relu(a) }", {"Neg", "Relu"}),
    "SimplifiedLayerNormFusion": (
        BEHIND + "q = Pow(p, two) m = ReduceMean <axes = [-1]> (q) a = Add(m, small) r = Sqrt(a) d = Div(p, r) "
        "y = Mul(d, row) }",
        {"Neg", "SimplifiedLayerNormalization"},
    ),
    "TransposeOptimizer": (
        "float[2,4] x) => (float[2,4] y) "
        "{ a = Transpose <perm = [1, 0]> (x) b = Relu(a) y = Transpose <perm = [1, 0]> (b) }",
        {"Relu"},
    ),
}
"""For a transformer: inputs, outputs and nodes of a graph, and the types of the nodes that it makes of them."""

FLOATS = {
    "zero": 0,
    "one": 1,
    "another_one": 1,
    "half": 0.5,
    "two": 2,
    "three": 3,
    "six": 6,
    "small": 0.044715,
    "pi": 0.7978845834732056,
    "root": 1.4142135381698608,
}
WEIGHTS: dict[str, np.ndarray] = {name: np.array(value, np.float32) for name, value in FLOATS.items()} | {
    "row": np.arange(1, 5, dtype=np.float32) / 4,
    "square": np.arange(16, dtype=np.float32).reshape(4, 4) / 16,
    "filter": np.arange(54, dtype=np.float32).reshape(3, 2, 3, 3) / 54,
    "c3": np.array([0.5, 1, 1.5], np.float32),
    "channels": np.array([0.5, 1, 1.5], np.float32).reshape(3, 1, 1),
    "start": np.array([0]),
    "end": np.array([2**63 - 1]),
    "ones": np.array([1, 1]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_it_does_what_its_name_says(name: str) -> None:
    """Most make other operators. What only makes fewer of the same, or shares a constant, shows in the counts."""
    text, expected = GRAPHS[name]
    before = _model(text)

    after = transformed(before, name)

    assert set(_operators(after)) == expected
    assert _operators(after) != _operators(before) or len(after.graph.initializer) < len(before.graph.initializer)
    report = compare(before, after, draws=1)
    assert report.equivalent, report.summary
    assert report.non_vacuous_draws


@pytest.mark.parametrize("other", ["WeightBiasQuantization", "QDQS8ToU8Transformer"], ids=["basic", "extended"])
@pytest.mark.parametrize("name", GRAPHS)
def test_no_other_runs_beside_it(name: str, other: str) -> None:
    """Each graph stays as it is under a transformer of quantised models, so that it is the named one that acted."""
    before = _model(GRAPHS[name][0])

    after = transformed(before, other)

    assert _operators(after) == _operators(before)
    assert len(after.graph.initializer) >= len(before.graph.initializer)


def test_levels_run_all_of_theirs() -> None:
    """A Gelu of elementary operators is one of ONNX Runtime's own behind the level "basic" alone."""
    model = _model(GRAPHS["GeluFusionL2"][0])

    assert "Gelu" not in _operators(transformed_by_level(model, "basic"))
    assert set(_operators(transformed_by_level(model, "extended"))) == {"Gelu"}


def test_the_model_stays_as_it_was() -> None:
    model = _model(GRAPHS["MatMulAddFusion"][0])
    before = model.SerializeToString(deterministic=True)

    transformed(model, "MatMulAddFusion")

    assert model.SerializeToString(deterministic=True) == before


def test_no_name_stands_twice() -> None:
    assert len(set(TRANSFORMERS)) == len(TRANSFORMERS)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match=r"no graph transformer 'MatMulFusion': choose one of .*MatMulAddFusion"):
        transformed(_model(GRAPHS["MatMulAddFusion"][0]), "MatMulFusion")


def test_a_model_that_onnx_runtime_refuses_is_an_error_of_ours() -> None:
    model = _model(GRAPHS["MatMulAddFusion"][0])
    model.graph.node[0].op_type = "NoSuchOperator"

    with pytest.raises(RLFlowError, match=r"could not transform the model: .*NoSuchOperator"):
        transformed(model, "MatMulAddFusion")


def _model(text: str) -> ModelProto:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>\ng ({text}')
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(WEIGHTS[name], name) for name in sorted(read & set(WEIGHTS)))
    return model


def _operators(model: ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node if node.op_type != "Constant")
