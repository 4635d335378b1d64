"""A model without its computation keeps what a caller sees of it."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from rlflow.onnx_io.interface import interface_inputs, without_computation


def _model(ir_version: int) -> onnx.ModelProto:
    """y = x w + b, where `w` is a weight and `b` an input with a default; both are listed as inputs."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["y"])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in ("x", "b")]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])]
    weights = [numpy_helper.from_array(np.eye(2, dtype=np.float32), name) for name in ("w", "b")]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializer=weights, doc_string="kept")
    return helper.make_model(graph, ir_version=ir_version, opset_imports=[helper.make_opsetid("", 17)])


def test_an_input_with_a_default_can_be_fed() -> None:
    assert [value.name for value in interface_inputs(_model(8))] == ["x", "b"]


def test_old_models_list_weights_that_cannot_be_fed() -> None:
    """Before version 4 of the file format, the same list meant something else."""
    assert [value.name for value in interface_inputs(_model(3))] == ["x"]


def test_nodes_and_weights_are_left_out_and_defaults_stay() -> None:
    bare = without_computation(_model(8), None)
    assert not bare.graph.node
    assert [tensor.name for tensor in bare.graph.initializer] == ["b"]
    assert [value.name for value in bare.graph.output] == ["y"]
    assert (bare.graph.doc_string, bare.opset_import[0].version) == ("kept", 17)
