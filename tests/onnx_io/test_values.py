"""Values that are known when a model is imported become parameters."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.onnx_models import Build, Survives, floats

from rlflow.errors import ModelFormatError
from rlflow.ir.node import INPUT, WEIGHT, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io import from_onnx
from rlflow.onnx_io.payload import InitializerPayload
from rlflow.onnx_io.shapes.folding import MOST_ELEMENTS
from rlflow.onnx_io.values import OperatorNode, Values
from rlflow.ops.sizes import Size

OPSETS = (7, 9, 11, 12, 13, 17, 18, 21)


def _operators(model: onnx.ModelProto) -> list[str]:
    graph = from_onnx(model)
    return [("opaque " if graph.nodes[i].is_opaque else "") + graph.nodes[i].op for i in graph.order]


def test_reshape_to_a_computed_shape(model: Build, survives: Survives) -> None:
    nodes = [helper.make_node("Shape", ["z"], ["s"]), helper.make_node("Reshape", ["x", "s"], ["y"])]
    before = model(nodes, [floats("x", 6), floats("z", 2, 3)], [floats("y", 2, 3)])
    assert _operators(before) == ["Reshape"]
    survives(before)


@pytest.mark.parametrize("opset", OPSETS)
def test_scalars(model: Build, survives: Survives, opset: int) -> None:
    """A permutation of no axes and a reduction over none: attributes that are empty lists."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"]),
        helper.make_node("ReduceSum", ["t"], ["r"], keepdims=0),
        helper.make_node("Add", ["r", "w"], ["y"]),
    ]
    before = model(nodes, [floats("x")], [floats("y")], weights={"w": np.float32(2)}, opset=opset)
    assert _operators(before) == ["Transpose", "ReduceSum", "Add"]
    survives(before, {"x": np.array(3, np.float32)})


def test_a_folded_scalar_stays_a_scalar(model: Build, survives: Survives) -> None:
    nodes = [
        helper.make_node("Neg", ["w"], ["limit"]),
        helper.make_node("Range", ["zero", "limit", "one"], ["r"]),
        helper.make_node("Add", ["x", "r"], ["y"]),
    ]
    weights = {"w": np.float32(-3), "zero": np.float32(0), "one": np.float32(1)}
    survives(model(nodes, [floats("x", 3)], [floats("y", 3)], weights=weights))


@pytest.fixture
def values() -> Values:
    """An input `x`, a short weight `w`, and sizes `s` that are known only when the model runs."""
    made = Values()
    made.add(Node(INPUT, (), {}, (TensorType("float32", ("n", 4)),), ("x",)))
    made.add(_weight("w", np.array([0, -1])))
    sizes = made.add(Node("Shape", (Ref(0),), {}, (TensorType("int64", (2,)),), ("s",)))
    made.dynamic_sizes[Ref(sizes)] = np.array([Size("n"), 4], object)
    return made


def _weight(name: str, array: np.ndarray) -> Node:
    payload = InitializerPayload(numpy_helper.from_array(array))
    return Node(WEIGHT, (), {}, (TensorType(array.dtype.name, array.shape),), (name,), True, payload)


def test_values_are_found_by_name(values: Values) -> None:
    assert "x" in values
    assert "y" not in values
    assert values.type_of(values["w"]) == TensorType("int64", (2,))
    assert values.operands(helper.make_node("Clip", ["x", "", "w"], ["y"])) == [Ref(0), None, Ref(1)]


def test_a_value_that_nobody_computed_is_refused(values: Values) -> None:
    with pytest.raises(ModelFormatError, match="node 'Relu' reads 'y', which no earlier node computes"):
        values.operands(helper.make_node("Relu", ["y"], ["z"]))


def test_few_numbers_are_those_of_a_small_weight(values: Values) -> None:
    values.add(_weight("large", np.zeros(MOST_ELEMENTS + 1, np.int64)))
    assert np.array_equal(values.few_numbers(values["w"]), [0, -1])  # type: ignore[arg-type]
    assert values.few_numbers(values["large"]) is None
    assert values.few_numbers(values["x"]) is None
    assert values.few_numbers(None) is None


def test_sizes_may_be_known_only_when_the_model_runs(values: Values) -> None:
    sizes = values.sizes(values["s"])
    assert sizes is not None
    assert sizes[1] == 4
    assert values.constant(values["s"]) is None


def test_a_node_as_its_operator_reads_it(values: Values) -> None:
    proto = helper.make_node("Reshape", ["x", "s"], ["y"], allowzero=0)
    node = OperatorNode(proto, 17, values.operands(proto), values)
    assert (node.attributes, node.results, node.is_given(1), node.is_given(2)) == ({"allowzero": 0}, 1, True, False)
    assert node.type_of(0) == TensorType("float32", ("n", 4))
    assert node.constant(1) is None
    assert node.dynamic_shape(1, ("n", 4)) == (0, 4)
    assert node.dynamic_shape(0, ("n", 4)) is None
    assert node.element_type(1) == "float32"
