"""Types of values as ONNX infers them, and of operators that it does not know."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.onnx_models import Build, Survives, build_model, exported, floats

from rlflow.equivalence.compare import compare
from rlflow.ir import Graph, Node, TensorType
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.runtime.inputs import dimensions_of, draw_inputs


def node(kind: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), [output], **attributes)


def last(graph: Graph) -> Node:
    return graph.nodes[graph.outputs[0].node]


@pytest.mark.parametrize(("kind", "outputs"), [("FastGelu", 1), ("SkipLayerNormalization", 4)])
def test_types_of_operators_that_onnx_does_not_know(model: Build, survives: Survives, kind: str, outputs: int) -> None:
    """What reads them is understood."""
    names = ["m", "", "", "k"][:outputs] if outputs > 1 else ["k"]
    fused = helper.make_node(kind, ["x", "x", "w"] if outputs > 1 else ["x"], names, domain="com.microsoft")
    nodes = [fused, node("Add", "k k", "y")]
    weights = {"w": np.ones(4, np.float32)} if outputs > 1 else {}
    before = model(nodes, [floats("x", 2, 3, 4)], [floats("y", 2, 3, 4)], weights=weights, domains=["com.microsoft"])
    found = last(from_onnx(before))
    assert (found.op, found.is_opaque) == ("Add", False)
    survives(before, {"x": np.ones((2, 3, 4), np.float32)})


def test_dimensions_without_a_name_are_pinned_by_their_place() -> None:
    model = exported()
    for place in range(2):
        model.graph.input[0].type.tensor_type.shape.dim[place].ClearField("dim_param")
    sizes = dimensions_of(model, {"x": (2, 5, 12)})
    assert sizes == {"x[0]": 2, "x[1]": 5}
    graph = from_onnx(model, sizes)
    assert graph.type_of(graph.outputs[0]).shape == (2, 3, 5, 4)
    assert draw_inputs(model, np.random.default_rng(0), sizes)["x"].shape == (2, 5, 12)
    assert compare(model, to_onnx(graph), dimensions=sizes).equivalent


def test_a_stale_declared_size_is_not_believed() -> None:
    """The batch was opened in the inputs alone."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Shape", ["r"], ["s"])]
    declared = [floats("r", 3, 12), helper.make_tensor_value_info("s", TensorProto.INT64, [2])]
    graph = from_onnx(build_model(nodes, [floats("x", "N", 12)], declared))
    relu = next(n for n in graph.nodes.values() if n.op == "Relu")
    assert relu.types[0] == TensorType("float32", ("N", 12))
    assert "Shape" in {n.op for n in graph.nodes.values()}
