"""ONNX's element types and type protos as the library's `TensorType`, and back."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from rlflow.errors import ModelFormatError
from rlflow.ir.tensor_type import Dimension, TensorType

_NAMES: dict[int, str] = {
    TensorProto.FLOAT: "float32",
    TensorProto.DOUBLE: "float64",
    TensorProto.STRING: "string",
    TensorProto.BOOL: "bool",
}
_CODES = {name: code for code, name in _NAMES.items()}


def dtype_name(element_type: int) -> str:
    """Return numpy's name of an ONNX element type, or ONNX's in lower case; `ModelFormatError` for no type."""
    if element_type not in TensorProto.DataType.values():
        raise ModelFormatError(f"there is no element type {element_type}")
    return _NAMES.get(element_type) or TensorProto.DataType.Name(element_type).lower()


def element_type(dtype: str) -> int:
    """Return ONNX's number of the element type that `dtype_name` calls so."""
    code = _CODES.get(dtype)
    return code if code is not None else TensorProto.DataType.Value(dtype.upper())


def from_type_proto(proto: onnx.TypeProto) -> TensorType | None:
    """Convert a type proto; None for sequences, maps, optionals, sparse tensors and tensors of unknown element type."""
    if proto.WhichOneof("value") != "tensor_type" or not proto.tensor_type.elem_type:
        return None
    tensor = proto.tensor_type
    shape = tuple(_dimension(d) for d in tensor.shape.dim) if tensor.HasField("shape") else None
    return TensorType(dtype_name(tensor.elem_type), shape)


def _dimension(proto: onnx.TensorShapeProto.Dimension) -> Dimension:
    variant = proto.WhichOneof("value")
    if variant == "dim_value" and proto.dim_value >= 0:
        return int(proto.dim_value)
    symbol = proto.dim_param if variant == "dim_param" else ""
    return symbol if symbol and isinstance(symbol, str) else None


def to_value_info(name: str, tensor_type: TensorType) -> onnx.ValueInfoProto:
    """Declare a value of this name and type."""
    return helper.make_tensor_value_info(name, element_type(tensor_type.dtype), tensor_type.shape)
