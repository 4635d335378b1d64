"""Constant nodes in each of their spellings."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.onnx_models import Build, Survives, floats


@pytest.mark.parametrize("value", ["float", "int", "floats", "ints", "tensor", "string", "strings", "sparse"])
def test_constant_nodes_of_every_attribute(model: Build, survives: Survives, value: str) -> None:
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("v", TensorProto.FLOAT, [1], [5.0]),
        helper.make_tensor("i", TensorProto.INT64, [1], [1]),
        [3],
    )
    given: dict[str, Any] = {
        "float": {"value_float": 1.5},
        "int": {"value_int": 3},
        "floats": {"value_floats": [1.0, 2.0]},
        "ints": {"value_ints": [1, 2]},
        "tensor": {"value": onnx.numpy_helper.from_array(np.arange(3, dtype=np.float32))},
        "string": {"value_string": "a"},
        "strings": {"value_strings": ["a", "b"]},
        "sparse": {"sparse_value": sparse},
    }[value]
    nodes = [helper.make_node("Constant", [], ["c"], **given), helper.make_node("Identity", ["c"], ["y"])]
    kind = {"int": TensorProto.INT64, "ints": TensorProto.INT64, "string": TensorProto.STRING}
    kind["strings"] = TensorProto.STRING
    shape = [] if value in ("float", "int", "string") else [None]
    output = helper.make_tensor_value_info("y", kind.get(value, TensorProto.FLOAT), shape)
    survives(model(nodes, [floats("x", 1)], [output]), {"x": np.zeros(1, np.float32)})
