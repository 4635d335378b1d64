"""Sizes that a model computes from dynamic dimensions: symbols, moved about by the operators that move numbers.

Models with dynamic dimensions are exported with Shape, Gather and Concat before each Reshape, although nearly all of
these only copy dimensions of the value:

    x: float32[batch, 12, 64];  Shape(x) = [batch, 12, 64];  Concat(Gather(.., 0), [768]) = [batch, 768]

An array of sizes holds numbers (`int`) and `Size`s, which stand for a symbol or for a size of which nothing is known.
Operators are evaluated on it as on numbers.

Invariant: a `Size` is at least 0. Arithmetic whose result might be anything else, or a comparison that might go either
way, raises `TypeError`, and the computation is given up: no result is ever guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper

from rlflow.errors import TypeInferenceError
from rlflow.ir.dimension import at_most
from rlflow.ir.node import Node
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops.domain import FloatDomain
from rlflow.ops.registry import OPERATORS
from rlflow.ops.schema import broadcast

SINCE = 7
"""The opset since which operators broadcast."""
_WHOLE = frozenset({"int32", "int64"})
_MOVING = frozenset("Add Cast Concat Div Gather Identity Mul Reshape Slice Squeeze Sub Unsqueeze".split())

Sizes = np.ndarray
"""An array of objects, each an `int` or a `Size`."""


@dataclass(frozen=True, eq=False)
class Size:
    """A whole number, at least 0, that is known only when the model runs: that of `symbol`, or any if that is None.

    Arithmetic raises `TypeError` if its result might be no such number.
    """

    symbol: str | None = None

    def __add__(self, other: object) -> Size:
        return self if _is(other, 0) else _some(other)

    def __sub__(self, other: object) -> Size | int:
        if isinstance(other, Size) and self.is_same(other):
            return 0
        if _is(other, 0):
            return self
        raise TypeError(f"{self} - {other} may be below zero")

    def __mul__(self, other: object) -> Size | int:
        if _is(other, 0):
            return 0
        return self if _is(other, 1) else _some(other)

    def __floordiv__(self, other: object) -> Size:
        if not isinstance(other, int) or other < 1:
            raise TypeError(f"{self} // {other} may be anything")
        return self if other == 1 else Size()

    def __eq__(self, other: object) -> bool:
        """Compare; `TypeError` if only the running model could tell, as for any number that is not below zero."""
        if isinstance(other, Size) and self.is_same(other):
            return True
        if isinstance(other, int) and other < 0:
            return False
        raise TypeError(f"{self} may or may not be {other}")

    __radd__, __rmul__, __hash__ = __add__, __mul__, None  # type: ignore[assignment]

    def is_same(self, other: Size) -> bool:
        """Return True if both are certain to be the same number."""
        return self is other or (self.symbol is not None and self.symbol == other.symbol)


def _is(value: object, number: int) -> bool:
    return isinstance(value, int) and value == number


def _some(other: object) -> Size:
    """Return a size of which nothing is known, as the sum or product of a size and `other`."""
    if isinstance(other, Size) or (isinstance(other, int) and other >= 0):
        return Size()
    raise TypeError(f"a size and {other} may give a number below zero")


def of_shape(proto: onnx.NodeProto, tensor_type: TensorType | None) -> Sizes | None:
    """Return the result of a Shape node (ai.onnx 1 to 25) on a value of this type; None if its rank is not known."""
    bounds = {a.name: helper.get_attribute_value(a) for a in proto.attribute if not a.ref_attr_name}
    if tensor_type is None or tensor_type.shape is None or len(bounds) < len(proto.attribute):
        return None
    read = tensor_type.shape[bounds.get("start") : bounds.get("end")]
    return np.array([d if isinstance(d, int) else Size(d) for d in read], object)


class _SizeDomain(FloatDomain):
    """The domain of whole numbers and sizes; only numbers at least 0 are divided, where all ways of rounding agree."""

    def divide(self, a: Sizes, b: Sizes) -> Sizes:
        return np.asarray(_QUOTIENT(a, b), object)


def _quotient(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and min(a, b) < 0:
        raise TypeError(f"{a} // {b} depends on the way of rounding")
    return a // b


_QUOTIENT = np.frompyfunc(_quotient, 2, 1)
_COMPARING: Mapping[str, Callable[..., np.ndarray]] = {"Equal": np.equal, "Where": np.where}


def computed(proto: onnx.NodeProto, node: Node | None, dtype: str, operands: Sequence[np.ndarray]) -> np.ndarray | None:
    """Compute an operator of ai.onnx on whole numbers and sizes; None if the result is not certain.

    `node` is the operator as the library understands it, if it does; `dtype` is the element type of its result. The
    result consists of numbers and sizes, or, for comparisons, of booleans.
    """
    is_known = node.op in _MOVING if node else proto.op_type in _COMPARING
    if len(proto.output) != 1 or dtype not in _WHOLE or not is_known:
        return None
    if proto.op_type == "Cast":
        return operands[0]

    try:
        if node:
            values = OPERATORS[node.op].evaluate(_SizeDomain(), node.attributes, operands)[0]
        else:
            values = _COMPARING[proto.op_type](*operands)
        return _as_numbers(np.asarray(values), dtype)
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
    if numbers.count(-1) > 1 or any(_is(size, 0) for size in sizes):
        return None

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
    match proto.op_type, [None if operand is None else list(operand.astype(object).flat) for operand in operands]:
        case "Expand", [_, [*sizes]] if tensor_type.shape is not None:
            return _expanded(tensor_type, tuple(map(_dimension, sizes)))
        case "Range", [[start], [Size() as limit], [step]] if _is(start, 0) and _is(step, 1):
            return TensorType(tensor_type.dtype, (limit.symbol,))
        case "Reshape", [_, [*sizes]] if not any(_is(size, 0) for size in sizes):
            return TensorType(tensor_type.dtype, tuple(map(_dimension, sizes)))
        case "Slice", [_, [*starts], [*ends], [*axes]] if tensor_type.shape is not None:
            return _sliced(tensor_type, starts, ends, axes)
        case "Slice", [_, [*starts], [*ends], [*axes], [*steps]] if all(_is(step, 1) for step in steps):
            return None if tensor_type.shape is None else _sliced(tensor_type, starts, ends, axes)
    return None


def _dimension(size: int | Size) -> Dimension:
    """Return the dimension of this size; None for -1, which stands for the rest."""
    if isinstance(size, Size):
        return size.symbol
    return size if size >= 0 else None


def _expanded(tensor_type: TensorType, shape: tuple[Dimension, ...]) -> TensorType | None:
    try:
        return TensorType(tensor_type.dtype, broadcast([tensor_type.shape or (), shape], "Expand"))
    except TypeInferenceError:
        return None


def _sliced(tensor_type: TensorType, starts: list[Any], ends: list[Any], axes: list[int]) -> TensorType | None:
    """Infer the type of a Slice with step 1: other axes stay, and one cut from 0 to a size is at most that."""
    result = list(tensor_type.shape or ())
    if not len(starts) == len(ends) == len(axes) or not all(-len(result) <= axis < len(result) for axis in axes):
        return None
    for axis, start, end in zip(axes, starts, ends, strict=True):
        result[axis] = _smaller(result[axis], end) if _is(start, 0) and isinstance(end, Size) else None
    return TensorType(tensor_type.dtype, tuple(result))


def _smaller(dimension: Dimension, size: Size) -> Dimension:
    """Return the smaller one of a dimension and a size, None if it has no symbol; 1 may be smaller or larger."""
    if size.symbol is None or dimension in (None, 1):
        return None
    if isinstance(dimension, int):
        return at_most(size.symbol, dimension)
    return dimension if dimension == size.symbol else None
