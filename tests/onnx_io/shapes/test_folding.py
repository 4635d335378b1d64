"""Sizes that a model computes although they follow from the shapes of its inputs, and sizes that its user names."""

import tracemalloc

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.kernels import same_values
from support.onnx_models import build_model, exported, floats

from rlflow.errors import RLFlowError
from rlflow.ir import validate
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.onnx_io.shapes.folding import MOST_CHOSEN, chooses, computed
from rlflow.ops.registry import having
from rlflow.runtime.session import open_session, run

PINS = {"batch": 2, "seq": 5}


@pytest.mark.parametrize("opset", [9, 11, 13, 17])
def test_pinned_sizes_leave_nothing_to_compute(opset: int) -> None:
    graph = from_onnx(exported(opset), PINS)
    validate(graph)
    assert [graph.nodes[i].op for i in graph.order] == ["Reshape", "Transpose", "Relu"]
    assert not any(node.is_opaque for node in graph.nodes.values())
    assert graph.type_of(graph.outputs[0]).shape == (2, 3, 5, 4)


@pytest.mark.parametrize("opset", [9, 11, 13, 17])
def test_without_pins_the_sizes_stay_open(opset: int) -> None:
    graph = from_onnx(exported(opset))
    assert not graph.type_of(graph.outputs[0]).is_static
    for shape in ((2, 5, 12), (3, 7, 12)):
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        outputs = [run(open_session(m, "as_written"), {"x": x})["y"] for m in (exported(opset), to_onnx(graph))]
        assert same_values(*outputs)


def test_a_pinned_model_declares_its_sizes_and_refuses_others() -> None:
    after = to_onnx(from_onnx(exported(), PINS))
    check_model(after)
    declared = [
        [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in (*after.graph.input, *after.graph.output)
    ]
    assert declared == [[2, 5, 12], [2, "heads", 5, "size"]]
    x = np.random.default_rng(0).standard_normal((2, 5, 12)).astype(np.float32)
    session = open_session(after, "as_written")
    assert same_values(run(open_session(exported(), "as_written"), {"x": x})["y"], run(session, {"x": x})["y"])
    with pytest.raises(RLFlowError, match="could not run the model on inputs x"):
        run(session, {"x": x[:1]})


def test_nodes_have_the_same_numbers_with_and_without_pins() -> None:
    """On this, finding a rewrite again rests: what both graphs have goes by one number, and so does what is new."""
    open_ended, pinned = from_onnx(exported()), from_onnx(exported(), PINS)
    assert open_ended.next_id == pinned.next_id
    shared = set(open_ended.nodes) & set(pinned.nodes)
    assert len(shared) > len(pinned.order)
    assert all(open_ended.nodes[i].names == pinned.nodes[i].names for i in shared)


def test_one_pin_leaves_the_other_size_open() -> None:
    graph = from_onnx(exported(17), {"seq": 5})
    after = to_onnx(graph)
    for batch in (1, 4):
        x = np.random.default_rng(0).standard_normal((batch, 5, 12)).astype(np.float32)
        outputs = [run(open_session(m, "as_written"), {"x": x})["y"] for m in (exported(17), after)]
        assert same_values(*outputs)


@pytest.mark.parametrize(("attributes", "expected"), [({}, [2, 5, 12]), ({"start": 1}, [5, 12]), ({"end": -1}, [2, 5])])
def test_the_shape_of_a_known_value_is_a_weight(attributes: dict[str, int], expected: list[int]) -> None:
    shape = helper.make_node("Shape", ["x"], ["s"], **attributes)
    sizes = helper.make_tensor_value_info("y", TensorProto.INT64, [None])
    nodes = [shape, helper.make_node("Add", ["s", "i"], ["y"])]
    index = helper.make_tensor_value_info("i", TensorProto.INT64, [1])
    model = build_model(nodes, [floats("x", 2, 5, 12), index], [sizes])
    after = to_onnx(from_onnx(model))
    assert [node.op_type for node in after.graph.node] == ["Add"]
    feeds = {"x": np.zeros((2, 5, 12), np.float32), "i": np.array([0])}
    assert run(open_session(after, "as_written"), feeds)["y"].tolist() == expected


NUMBERS = {"a": np.array([7, -7, 3]), "b": np.array([2, 2, -5])}
ARITHMETIC = [
    *((op, ("a", "b"), {}) for op in ("Add", "Sub", "Mul", "Div", "Equal", "Greater", "Less", "Max", "Min", "Mod")),
    ("Concat", ("a", "b"), {"axis": 0}),
    ("Gather", ("a", "b0"), {"axis": 0}),
    ("Neg", ("a",), {}),
    ("Cast", ("a",), {"to": TensorProto.BOOL}),
    ("ConstantOfShape", ("b0",), {"value": helper.make_tensor("v", TensorProto.INT64, [1], [3])}),
    ("Range", ("zero", "five", "two"), {}),
    ("Where", ("c", "a", "b"), {}),
    ("Expand", ("zero", "b0"), {}),
    ("ReduceProd", ("a",), {"keepdims": 0}),
]
NUMBERS |= {"b0": np.array([2]), "zero": np.array(0), "five": np.array(5), "two": np.array(2)}
NUMBERS |= {"c": np.array([True, False, True])}


@pytest.mark.parametrize(("op", "operands", "attributes"), ARITHMETIC, ids=[op for op, *_ in ARITHMETIC])
def test_whole_numbers_come_out_as_in_onnx_runtime(op: str, operands: tuple[str, ...], attributes: dict) -> None:
    node = helper.make_node(op, operands, ["y"], **attributes)
    feeds = {name: NUMBERS[name] for name in operands}
    found = computed(node, feeds, 17)
    assert found is not None
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()
    ]
    output = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(found.dtype), found.shape)
    model = build_model([node], inputs, [output])
    assert same_values(run(open_session(model, "as_written"), feeds)["y"], found)


WHOLE = {"value": helper.make_tensor("", TensorProto.INT64, [1], [7])}


@pytest.mark.parametrize(
    ("op", "few", "many", "attributes"),
    [
        ("ConstantOfShape", [[3]], [[10**12]], WHOLE),
        ("Expand", [1, [2, 3]], [1, [10**7, 10**7]], {}),
        ("Range", [0, 3, 1], [0, 10**14, 1], {}),
    ],
)
def test_what_would_fill_the_memory_is_not_computed(
    op: str, few: list[object], many: list[object], attributes: dict[str, TensorProto]
) -> None:
    """Terabytes, which no machine has, of few numbers that go in."""
    names = [f"a{place}" for place in range(len(few))]
    node = helper.make_node(op, names, ["y"], **attributes)
    small, large = ({n: np.array(v, np.int64) for n, v in zip(names, side, strict=True)} for side in (few, many))
    value = computed(node, small, 17)
    assert value is not None
    assert value.dtype == np.int64
    tracemalloc.start()
    assert computed(node, large, 17) is None
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


_TABLE, _ROWS = np.arange(-12.0, 12.0, dtype=np.float32).reshape(4, 6), np.array([[3, 0, 2, 1, 1, 0]])
_TABLE[0] = np.nan, -0.0, 0.0, np.inf, -np.inf, 1e-42
CHOOSING: dict[str, tuple[list[np.ndarray], dict]] = {
    "Abs": ([_TABLE], {}),
    "Sign": ([_TABLE], {}),
    **dict.fromkeys(("Max", "Min"), ([_TABLE, _TABLE[::-1]], {})),
    **dict.fromkeys(("And", "Or"), ([_TABLE > 2, _TABLE < 5], {})),
    "Not": ([_TABLE > 2], {}),
    **dict.fromkeys(("Greater", "GreaterOrEqual", "Less", "LessOrEqual"), ([_TABLE, _TABLE[::-1]], {})),
    "Equal": ([_ROWS, _ROWS[:, ::-1]], {}),
    "Where": ([_TABLE > 2, _TABLE, np.float32(-np.inf)], {}),
    "Tile": ([_TABLE, np.array([2, 3])], {}),
    "Trilu": ([_TABLE], {"upper": 1}),
    "Expand": ([_TABLE[:, :1], np.array([4, 9])], {}),
    "GatherElements": ([_TABLE, _ROWS], {"axis": 0}),
    "GatherND": ([_TABLE, np.array([[1, 2], [3, 3]])], {}),
    "ScatterElements": ([_TABLE, _ROWS, -(_TABLE[:1] ** 2)], {"axis": 0}),
    "ScatterND": ([_TABLE, np.array([[2], [0]]), _TABLE[:2] * 3], {}),
}


def test_every_operator_that_chooses_is_tried() -> None:
    assert having(lambda traits: traits.chooses) == CHOOSING.keys()


@pytest.mark.parametrize("op", sorted(CHOOSING))
def test_what_is_chosen_from_constants_is_a_weight(op: str) -> None:
    operands, attributes = CHOOSING[op]
    node = helper.make_node(op, [f"c{place}" for place in range(len(operands))], ["mask"], **attributes)
    weights = {f"c{place}": np.asarray(value) for place, value in enumerate(operands)}
    cast = helper.make_node("Cast", ["mask"], ["numbers"], to=TensorProto.FLOAT)
    product = helper.make_node("Mul", ["x", "numbers"], ["y"])
    model = build_model([node, cast, product], [floats("x", 1)], [floats("y", None, None)], weights=weights)
    after = to_onnx(from_onnx(model))
    assert [node.op_type for node in after.graph.node] == ["Mul"]
    feeds = {"x": np.ones(1, np.float32)}
    assert same_values(*(run(open_session(m, "as_written"), feeds)["y"] for m in (model, after)))


def test_what_adds_up_and_what_would_be_large_stay_nodes() -> None:
    scattered = helper.make_node("ScatterElements", ["t", "i", "u"], ["mask"], axis=0, reduction="add")
    tiled = helper.make_node("Tile", ["t", "n"], ["mask"])
    assert not chooses(scattered)
    assert chooses(tiled)
    for times, stays in ((2, False), (MOST_CHOSEN, True)):
        weights = {"t": _TABLE, "n": np.array([times, 1])}
        added = helper.make_node("Add", ["x", "mask"], ["y"])
        model = build_model([tiled, added], [floats("x", 1)], [floats("y", None, None)], weights=weights)
        assert any(node.op_type == "Tile" for node in to_onnx(from_onnx(model)).graph.node) == stays
