"""Values that are known when a model is imported become parameters."""

import numpy as np
import onnx
import pytest
from onnx import helper
from support.onnx_models import Build, Survives, floats

from rlflow.onnx_io import from_onnx

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
