"""Sizes that a model computes from dynamic dimensions: symbols, moved about by the operators that move numbers.

Models with dynamic dimensions are exported with Shape, Gather and Concat before each Reshape, although nearly all of
these only copy dimensions of the value:

    x: float32[batch, 12, 64];  Shape(x) = [batch, 12, 64];  Concat(Gather(.., 0), [768]) = [batch, 768]

This is how nodes are read; what operators make of sizes is their own affair (`ops/sizes.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx
from onnx import helper

from rlflow.ir.node import Node
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops.registry import NO_TRAITS, OPERATORS, TRAITS, having
from rlflow.ops.sizes import Size, SizeDomain, Sizes, is_number
from rlflow.ops.traits import SizeArithmetic

SINCE = 7
"""The opset since which operators broadcast."""
_WHOLE = frozenset({"int32", "int64"})
_DYNAMIC = having(lambda traits: traits.size_arithmetic & SizeArithmetic.DYNAMIC)


def of_shape(proto: onnx.NodeProto, tensor_type: TensorType | None) -> Sizes | None:
    """Return the result of a Shape node (ai.onnx 1 to 25) on a value of this type; None if its rank is not known."""
    bounds = {a.name: helper.get_attribute_value(a) for a in proto.attribute if not a.ref_attr_name}
    if tensor_type is None or tensor_type.shape is None or len(bounds) < len(proto.attribute):
        return None
    read = tensor_type.shape[bounds.get("start") : bounds.get("end")]
    return np.array([d if isinstance(d, int) else Size(d) for d in read], object)


def computed(proto: onnx.NodeProto, node: Node | None, dtype: str, operands: Sequence[np.ndarray]) -> np.ndarray | None:
    """Compute an operator of ai.onnx on whole numbers and sizes; None if the result is not certain.

    `node` is the operator as the library understands it, if it does; `dtype` is the element type of its result. The
    result consists of numbers and sizes, or, for comparisons, of booleans.
    """
    if len(proto.output) != 1 or dtype not in _WHOLE:
        return None
    try:
        if node is None:
            compare = TRAITS.get(proto.op_type, NO_TRAITS).of_sizes
            return None if compare is None else _as_numbers(np.asarray(compare(*operands)), dtype)
        if node.op not in _DYNAMIC:
            return None
        operator = OPERATORS[node.op]
        if operator.onnx.element_type:  # sizes have none
            return operands[0]
        return _as_numbers(np.asarray(operator.evaluate(SizeDomain(), node.attributes, operands)[0]), dtype)
    except (TypeError, ValueError, IndexError, ZeroDivisionError, OverflowError):
        return None


def _as_numbers(values: np.ndarray, dtype: str) -> np.ndarray:
    """Convert an array of objects to this element type if all of them are numbers."""
    if values.dtype != object or any(isinstance(value, Size) for value in values.flat):
        return values
    return values.astype(dtype)


def target(sizes: Sizes, shape: Sequence[Dimension]) -> tuple[int, ...] | None:
    """Write the target of a Reshape of a value of this shape in numbers alone: 0 copies a dimension, -1 is the rest.

    None if numbers cannot express it. A rest beside copied dimensions must be known as a number: for a value without
    elements, ONNX could not compute it.
    """
    numbers = [_in_numbers(size, shape[place : place + 1]) for place, size in enumerate(sizes)]
    if numbers.count(-1) > 1 or any(is_number(size, 0) for size in sizes):
        return None

    # A symbolic rest beside copied dimensions is only certain if it comes out as a number.
    if 0 in numbers and -1 in numbers and isinstance(sizes[numbers.index(-1)], Size):
        left = [d for place, d in enumerate(shape) if numbers[place : place + 1] != [0]]
        fixed = prod(number for number in numbers if number > 0)
        if not all(isinstance(d, int) for d in left) or prod(left) % fixed:  # type: ignore[arg-type]
            return None
        numbers[numbers.index(-1)] = prod(left) // fixed  # type: ignore[arg-type]
    return tuple(numbers)


def _in_numbers(size: int | Size, beside: Sequence[Dimension]) -> int:
    if isinstance(size, int):
        return size
    return 0 if size.symbol is not None and tuple(beside) == (size.symbol,) else -1


def typed(proto: onnx.NodeProto, tensor_type: TensorType, operands: Sequence[np.ndarray | None]) -> TensorType | None:
    """Infer the type of an operator of ai.onnx from that of its first operand and from operands of numbers and sizes.

    `operands` has None for those that are not known. The result is None for most operators, and if nothing follows.
    """
    infer = TRAITS.get(proto.op_type, NO_TRAITS).type_by_sizes
    if infer is None:
        return None
    return infer(tensor_type, [None if operand is None else list(operand.astype(object).flat) for operand in operands])
