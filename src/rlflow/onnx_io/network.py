"""Neural networks written as ONNX models, operator by operator.

    network = Network()
    x = network.input("x", np.float32, ["rows", 3])
    y = network.add("Relu", network.add("Gemm", x, weight, bias))
    model = network.model({"y": y}, ["rows", 4])

The invariant: the same operators and weights give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, checker, helper, numpy_helper

Model = ModelProto
_IR_VERSION = 10
_OPSET = 18  # that of ScatterND with sums over what has the same place, and of ReduceSum's axes as an operand


class Network:
    """One network that is being written. A value in it goes by its name."""

    def __init__(self) -> None:
        self._inputs: list[ValueInfoProto] = []
        self._weights: list[TensorProto] = []
        self._nodes: list[NodeProto] = []

    def input(self, name: str, dtype: type[np.generic], shape: Sequence[int | str]) -> str:
        """Declare an input and return its name; a dimension that is a text may be of any size."""
        self._inputs.append(helper.make_tensor_value_info(name, element_of(dtype), shape))
        return name

    def add(self, operator: str, *operands: str | np.ndarray | np.generic, **attributes: Any) -> str:
        """Apply an operator of ONNX to values, and to arrays that never change; return its first output."""
        names = [one if isinstance(one, str) else self._weight(one) for one in operands]
        result = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, names, [result], **attributes))
        return result

    def model(
        self, outputs: Mapping[str, str], shape: Sequence[int | str], texts: Mapping[str, str] = MappingProxyType({})
    ) -> Model:
        """Return the model of these outputs, all float32 of one shape, with texts about it, checked."""
        named = [helper.make_node("Identity", [value], [name]) for name, value in outputs.items()]
        declared = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in outputs]
        graph = helper.make_graph([*self._nodes, *named], "network", self._inputs, declared, self._weights)
        model = helper.make_model(graph, ir_version=_IR_VERSION, opset_imports=[helper.make_opsetid("", _OPSET)])
        helper.set_model_props(model, dict(texts))
        checker.check_model(model)
        return model

    def _weight(self, value: np.ndarray | np.generic) -> str:
        name = f"w{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name


def element_of(dtype: type[np.generic]) -> int:
    """Return the number by which ONNX knows a type."""
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def texts_of(model: Model) -> dict[str, str]:
    """Return the texts about a model."""
    return {entry.key: entry.value for entry in model.metadata_props}
