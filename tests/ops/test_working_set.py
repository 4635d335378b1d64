"""The memory that a run of a model touches."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from rlflow.onnx_io import from_onnx
from rlflow.ops.working_set import working_set_mb


def test_tables_are_not_read_as_a_whole_and_a_weight_that_two_read_counts_once():
    """Of three results of 3 x 1000 numbers each; the view of the last one is the same memory."""
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [3])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [3, 1000])
    weights = [
        numpy_helper.from_array(np.ones((5000, 1000), np.float32), "table"),
        numpy_helper.from_array(np.ones((1000, 1000), np.float32), "w"),
    ]
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["x"]),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("MatMul", ["y", "w"], ["z"]),
        helper.make_node("Flatten", ["z"], ["out"]),
    ]
    graph = helper.make_graph(nodes, "g", [ids], [out], weights)
    imported = from_onnx(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]))
    assert working_set_mb(imported) == imported.header.working_set_mb == 4.0 + 3 * 0.012
