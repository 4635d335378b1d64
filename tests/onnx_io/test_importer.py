"""Operators in every spelling that the opsets from 7 on have for them survive import and export bit for bit."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.onnx_models import Build, Survives, floats

from rlflow.onnx_io import from_onnx

OPSETS = (7, 9, 11, 12, 13, 17, 18, 21)
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 11


def _operators(model: onnx.ModelProto) -> list[str]:
    graph = from_onnx(model)
    return [("opaque " if graph.nodes[i].is_opaque else "") + graph.nodes[i].op for i in graph.order]


def _axes(kind: str, axes: list[int], opset: int, since: int, **attributes: Any) -> tuple[onnx.NodeProto, dict]:
    """An operator whose axes were an attribute until opset `since`."""
    if opset < since:
        return helper.make_node(kind, ["x"], ["y"], axes=axes, **attributes), {}
    return helper.make_node(kind, ["x", "axes"], ["y"], **attributes), {"axes": np.array(axes, np.int64)}


@pytest.mark.parametrize("opset", OPSETS)
def test_axes_of_reductions(model: Build, survives: Survives, opset: int) -> None:
    for kind, since in (("ReduceSum", 13), ("ReduceMean", 18)):
        node, weights = _axes(kind, [0, 2], opset, since, keepdims=0)
        before = model([node], [floats("x", 2, 3, 4)], [floats("y", 3)], weights=weights, opset=opset)
        assert _operators(before) == [kind]
        survives(before, {"x": X})


@pytest.mark.parametrize("opset", OPSETS)
def test_axes_of_squeeze_and_unsqueeze(model: Build, survives: Survives, opset: int) -> None:
    node, weights = _axes("Unsqueeze", [0, 2], opset, 13)
    before = model([node], [floats("x", 2, 3, 4)], [floats("y", 1, 2, 1, 3, 4)], weights=weights, opset=opset)
    assert _operators(before) == ["Unsqueeze"]
    survives(before, {"x": X})
    node, weights = _axes("Squeeze", [1], opset, 13)
    before = model([node], [floats("x", 2, 1, 4)], [floats("y", 2, 4)], weights=weights, opset=opset)
    assert _operators(before) == ["Squeeze"]
    survives(before, {"x": X[:, :1]})


@pytest.mark.parametrize("opset", OPSETS)
def test_softmax_is_understood_from_13_on_where_it_means_one_axis(model: Build, survives: Survives, opset: int) -> None:
    before = model(
        [helper.make_node("Softmax", ["x"], ["y"], axis=1)], [floats("x", 2, 3, 4)], [floats("y", 2, 3, 4)], opset=opset
    )
    assert _operators(before) == (["Softmax"] if opset >= 13 else ["opaque Softmax"])
    survives(before, {"x": X})


@pytest.mark.parametrize("opset", OPSETS)
def test_softmax_without_axis_keeps_its_opsets_default(model: Build, survives: Survives, opset: int) -> None:
    before = model(
        [helper.make_node("Softmax", ["x"], ["y"])], [floats("x", 2, 3, 4)], [floats("y", 2, 3, 4)], opset=opset
    )
    survives(before, {"x": X})


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("sizes", [None, [1, 3]])
def test_split_with_and_without_sizes(model: Build, survives: Survives, opset: int, sizes: list[int] | None) -> None:
    attributes: dict[str, Any] = {"axis": 2}
    weights, operands = {}, ["x"]
    if sizes and opset < 13:
        attributes["split"] = sizes
    elif sizes:
        weights, operands = {"s": np.array(sizes)}, ["x", "s"]
    elif opset >= 18:
        attributes["num_outputs"] = 2
    node = helper.make_node("Split", operands, ["a", "b"], **attributes)
    widths = sizes or [2, 2]
    outputs = [floats(n, 2, 3, w) for n, w in zip("ab", widths, strict=True)]
    before = model([node], [floats("x", 2, 3, 4)], outputs, weights=weights, opset=opset)
    assert _operators(before) == ["Split"]
    survives(before, {"x": X})


def test_split_into_uneven_parts(model: Build, survives: Survives) -> None:
    node = helper.make_node("Split", ["x"], ["a", "b", "c"], axis=0, num_outputs=3)
    outputs = [floats(n, w) for n, w in zip("abc", (3, 3, 1), strict=True)]
    before = model([node], [floats("x", 7)], outputs, opset=18)
    assert _operators(before) == ["Split"]
    survives(before)


def test_split_of_an_unknown_dimension_is_opaque(model: Build, survives: Survives) -> None:
    node = helper.make_node("Split", ["x"], ["a", "b"], axis=0)
    before = model([node], [floats("x", "n")], [floats("a", None), floats("b", None)])
    assert _operators(before) == ["opaque Split"]
    survives(before, {"x": X[0, 0]})


@pytest.mark.parametrize(
    ("shape", "allowzero", "expected", "operator"),
    [
        ([0, -1], 0, (2, 12), "Reshape"),
        ([-1], 0, (24,), "Reshape"),
        ([4, 0, 2], 0, (4, 3, 2), "Reshape"),
        ([2, 12], 1, (2, 12), "Reshape"),
    ],
)
def test_reshape(
    model: Build,
    survives: Survives,
    shape: list[int],
    allowzero: int,
    expected: tuple[int, ...],
    operator: str,
) -> None:
    node = helper.make_node("Reshape", ["x", "s"], ["y"], **({"allowzero": 1} if allowzero else {}))
    before = model([node], [floats("x", 2, 3, 4)], [floats("y", *expected)], weights={"s": np.array(shape)})
    assert _operators(before) == [operator]
    survives(before, {"x": X})


@pytest.mark.parametrize(
    ("shape", "target", "allowzero"),
    [((0, 3), [3, 0], 1), ((0, 3), [0, 3], 0), ((0, 3), [-1, 3], 0), ((2, 0), [0, 0], 0)],
)
def test_reshape_of_empty_tensors(
    model: Build, survives: Survives, shape: tuple[int, ...], target: list[int], allowzero: int
) -> None:
    node = helper.make_node("Reshape", ["x", "s"], ["y"], allowzero=allowzero)
    before = model([node], [floats("x", *shape)], [floats("y", None, None)], weights={"s": np.array(target)})
    survives(before, {"x": np.zeros(shape, np.float32)})


def test_squeeze_without_axes(model: Build, survives: Survives) -> None:
    before = model([helper.make_node("Squeeze", ["x"], ["y"])], [floats("x", 1, 3, 1)], [floats("y", 3)])
    survives(before)


@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceMean"])
@pytest.mark.parametrize("given", ["absent", "empty"])
@pytest.mark.parametrize("noop", [0, 1])
def test_reductions_without_axes(model: Build, survives: Survives, kind: str, given: str, noop: int) -> None:
    """With no axes all are reduced, unless the flag says that none is."""
    operands, weights = (["x"], {}) if given == "absent" else (["x", "a"], {"a": np.zeros(0, np.int64)})
    node = helper.make_node(kind, operands, ["y"], noop_with_empty_axes=noop)
    shape = (2, 3, 4) if noop else (1, 1, 1)
    before = model([node], [floats("x", 2, 3, 4)], [floats("y", *shape)], weights=weights, opset=18)
    assert _operators(before) == [f"opaque {kind}" if noop else kind]
    survives(before, {"x": X})


@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceMean"])
def test_reductions_with_empty_axes_attribute(model: Build, survives: Survives, kind: str) -> None:
    node = helper.make_node(kind, ["x"], ["y"])
    node.attribute.append(onnx.AttributeProto(name="axes", type=onnx.AttributeProto.INTS))
    before = model([node], [floats("x", 2, 3, 4)], [floats("y", 1, 1, 1)], opset=11)
    survives(before, {"x": X})


@pytest.mark.parametrize("opset", [10, 11, 13, 21])
@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([1], [3], [2], None),
        ([0, -2], [2, 2**63 - 1], None, None),
        ([-1], [-(2**63)], [1], [-1]),
        ([-1], [-4], [1], [-2]),
        ([1, 0], [100, 1], [-1, -3], [2, 1]),
    ],
)
def test_slice(
    model: Build,
    survives: Survives,
    opset: int,
    starts: list[int],
    ends: list[int],
    axes: list[int] | None,
    steps: list[int] | None,
) -> None:
    if axes and min(axes) < 0 and opset < 11:
        axes = [a % 3 for a in axes]
    given = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
    weights = {k: np.array(v) for k, v in given.items() if v is not None}
    operands = ["x", *(k if k in weights else "" for k in given)]
    while not operands[-1]:
        operands.pop()
    node = helper.make_node("Slice", operands, ["y"])
    before = model([node], [floats("x", 2, 3, 4)], [floats("y", None, None, None)], weights=weights, opset=opset)
    assert _operators(before) == ["Slice"]
    survives(before, {"x": X})


def test_slice_by_attributes_is_carried(model: Build, survives: Survives) -> None:
    node = helper.make_node("Slice", ["x"], ["y"], starts=[1], ends=[3], axes=[2])
    before = model([node], [floats("x", 2, 3, 4)], [floats("y", 2, 3, 2)], opset=9)
    assert _operators(before) == ["opaque Slice"]
    survives(before, {"x": X})


def test_slice_with_a_step_of_zero_is_carried(model: Build, survives: Survives) -> None:
    weights = {"a": np.array([0]), "b": np.array([3]), "c": np.array([0]), "d": np.array([0])}
    node = helper.make_node("Slice", ["x", "a", "b", "c", "d"], ["y"])
    before = model([node], [floats("x", 4)], [floats("y", None)], weights=weights)
    assert _operators(before) == ["opaque Slice"]
    survives(before, runs=False)


@pytest.mark.parametrize("opset", OPSETS)
def test_arithmetic_and_products(model: Build, survives: Survives, opset: int) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Concat", ["r", "a"], ["c"], axis=2),
        helper.make_node("Flatten", ["c"], ["f"], axis=2),
        helper.make_node("Gemm", ["f", "g", "h"], ["p"], transB=1, alpha=0.5, beta=2.0),
        helper.make_node("Transpose", ["p"], ["y"]),
    ]
    draw = np.random.default_rng(0).standard_normal
    weights = {n: draw(s).astype(np.float32) for n, s in (("w", (4, 5)), ("b", (5,)), ("g", (7, 10)), ("h", (7,)))}
    before = model(nodes, [floats("x", 2, 3, 4)], [floats("y", 7, 6)], weights=weights, opset=opset)
    assert _operators(before) == ["MatMul", "Add", "Relu", "Concat", "Flatten", "Gemm", "Transpose"]
    survives(before)


@pytest.mark.parametrize(
    ("exponent", "kind", "operator"),
    [
        (np.float32(3), np.float32, "Pow"),
        (np.float32([[2]]), np.float32, "Pow"),
        (np.float32([[[[2]]]]), np.float32, "opaque Pow"),
        (np.int64(2), np.float32, "opaque Pow"),
        (np.float32(0.5), np.int32, "opaque Pow"),
        (np.float32([1, 2, 3, 4]), np.float32, "opaque Pow"),
    ],
)
def test_pow_is_understood_for_one_exponent_of_the_same_type(
    model: Build, survives: Survives, exponent: np.ndarray, kind: type, operator: str
) -> None:
    value = np.abs(X).astype(kind)
    code = helper.np_dtype_to_tensor_dtype(value.dtype)
    source = helper.make_tensor_value_info("x", code, value.shape)
    target = helper.make_tensor_value_info("y", code, [None] * max(3, exponent.ndim))
    before = model([helper.make_node("Pow", ["x", "e"], ["y"])], [source], [target], weights={"e": exponent})
    assert _operators(before) == [operator]
    survives(before, {"x": value})


@pytest.mark.parametrize("bounds", [{"min": 0.0, "max": 6.0}, {"min": -1.5}, {"max": 0.25}, {}])
@pytest.mark.parametrize("opset", [10, 11, 17])
def test_clip_is_understood_in_every_opset(
    model: Build, survives: Survives, opset: int, bounds: dict[str, float]
) -> None:
    """Its bounds were attributes until opset 10; from 11 on each may be missing."""
    weights = {f"{name}_of": np.float32(value) for name, value in bounds.items()} if opset >= 11 else {}
    operands = [f"{name}_of" if name in bounds else "" for name in ("min", "max")] if weights else []
    node = helper.make_node("Clip", ["x", *operands], ["y"], **({} if weights else bounds))
    before = model([node], [floats("x", 2, 3)], [floats("y", 2, 3)], weights=weights, opset=opset)
    assert _operators(before) == ["Clip"]
    survives(before, {"x": np.array([[-np.inf, -2, 0], [0.3, 9, np.inf]], np.float32)})


def test_clip_of_bounds_that_are_computed_is_opaque(model: Build, survives: Survives) -> None:
    node = helper.make_node("Clip", ["x", "low"], ["y"])
    before = model([node], [floats("x", 3), floats("low")], [floats("y", 3)])
    assert _operators(before) == ["opaque Clip"]
    survives(before)


def test_folding_follows_onnx_where_numpy_differs(model: Build, survives: Survives) -> None:
    """Integers are divided towards zero; functions of half-precision numbers are left to the runtime."""
    nodes = [
        helper.make_node("Div", ["a", "b"], ["q"]),
        helper.make_node("Add", ["x", "q"], ["y"]),
        helper.make_node("Erf", ["h"], ["e"]),
        helper.make_node("Cast", ["e"], ["c"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["z", "c"], ["f"]),
    ]
    whole = [helper.make_tensor_value_info(n, TensorProto.INT32, [4]) for n in "xy"]
    weights = {
        "a": np.array([7, -7, 7, -7], np.int32),
        "b": np.array([2, 2, -2, -2], np.int32),
        "h": np.array([0.5, -1], np.float16),
    }
    before = model(nodes, [whole[0], floats("z", 2)], [whole[1], floats("f", 2)], weights=weights)
    after = survives(before, {"x": np.zeros(4, np.int32), "z": np.zeros(2, np.float32)}, runs=False)
    folded = {tuple(t.dims): onnx.numpy_helper.to_array(t) for t in after.graph.initializer}
    assert folded[(4,)].tolist() == [3, -3, -3, 3]
    assert "Erf" in [n.op_type for n in after.graph.node]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_is_folded_where_it_is_only_moved(model: Build, survives: Survives, dtype: type) -> None:
    """The weight is turned when the model is written; its square is left to the runtime."""
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [
        helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]),
        helper.make_node("Mul", ["t", "t"], ["s"]),
        helper.make_node("Concat", ["s", "x"], ["y"], axis=0),
    ]
    inside, outside = (helper.make_tensor_value_info(name, code, [3, size]) for name, size in (("x", 2), ("y", 2)))
    outside.type.tensor_type.shape.dim[0].dim_value = 6
    weight = np.arange(6).reshape(2, 3).astype(dtype)
    after = survives(model([*nodes], [inside], [outside], weights={"w": weight}), runs=False)
    assert [node.op_type for node in after.graph.node] == ["Mul", "Concat"]
    (stored,) = map(onnx.numpy_helper.to_array, after.graph.initializer)
    assert (stored.dtype, stored.tolist()) == (weight.dtype, weight.T.tolist())


def test_concat_with_an_empty_tensor(model: Build, survives: Survives) -> None:
    node = helper.make_node("Concat", ["e", "x"], ["y"], axis=0)
    before = model([node], [floats("x", 3)], [floats("y", 3)], weights={"e": np.zeros(0, np.float32)})
    graph = from_onnx(before)
    assert [str(graph.type_of(r)) for r in graph.outputs] == ["float32[3]"]
    survives(before)


@pytest.mark.parametrize("opset", OPSETS)
def test_a_cast_to_the_type_that_a_value_has_is_left_out(model: Build, survives: Survives, opset: int) -> None:
    """Its readers read the value itself. The model's output keeps its name, and so does what a branch reads."""
    alike = [helper.make_node("Cast", [x], [y], to=TensorProto.FLOAT) for x, y in (("x", "a"), ("a", "b"), ("b", "y"))]
    other = helper.make_node("Cast", ["b"], ["whole"], to=TensorProto.INT32)
    branch = helper.make_graph([helper.make_node("Neg", ["a"], ["n"])], "branch", [], [floats("n", 2, 3, 4)])
    choice = helper.make_node("If", ["yes"], ["z"], then_branch=branch, else_branch=branch)
    outputs = [
        floats("y", 2, 3, 4),
        floats("z", 2, 3, 4),
        helper.make_tensor_value_info("whole", TensorProto.INT32, (2, 3, 4)),
    ]
    before = model(
        [*alike, other, choice], [floats("x", 2, 3, 4)], outputs, weights={"yes": np.array([True])}, opset=opset
    )
    assert sorted(_operators(before)) == ["Cast", "opaque If"]
    survives(before, {"x": X})


def test_nodes_have_the_numbers_that_they_have_without_pins(model: Build) -> None:
    """A Cast of a size is a constant with pins, and left out without them."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Cast", ["s"], ["sizes"], to=TensorProto.INT64),
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Reshape", ["r", "sizes"], ["y"]),
    ]
    before = model(nodes, [floats("x", "n", 4)], [floats("y", None, None)])
    numbers = [
        {graph.nodes[i].op: i for i in graph.order if graph.nodes[i].op in ("Relu", "Reshape")}
        for graph in (from_onnx(before), from_onnx(before, {"n": 3}))
    ]
    assert numbers[0] == numbers[1]
    assert len(numbers[0]) == 2


def test_a_name_that_a_branch_reads_is_taken(model: Build, survives: Survives) -> None:
    """Of a Cast that is left out, too: the exporter makes up no such name."""
    branch = helper.make_graph([helper.make_node("Neg", ["rlflow/shape_0"], ["n"])], "branch", [], [floats("n", 24)])
    nodes = [
        helper.make_node("Cast", ["x"], ["rlflow/shape_0"], to=TensorProto.FLOAT),
        helper.make_node("Reshape", ["x", "lengths"], ["rows"]),  # whose lengths the exporter names anew
        helper.make_node("If", ["yes"], ["z"], then_branch=branch, else_branch=branch),
    ]
    outputs, weights = [floats("rows", 6, 4), floats("z", 24)], {"yes": np.array([True]), "lengths": np.array([6, 4])}
    survives(model(nodes, [floats("x", 24)], outputs, weights=weights), {"x": X.reshape(-1)})
