"""Sizes that a model computes of dimensions that are open: symbols, moved about by the operators that move numbers.

Models of open sizes are exported with Shape, Gather and Concat before each Reshape, although nearly all of these only
copy the dimensions that a value has.
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
"""Opset in which operators broadcast."""
_WHOLE = frozenset({"int32", "int64"})
_MOVING = frozenset("Add Cast Concat Div Gather Identity Mul Reshape Slice Squeeze Sub Unsqueeze".split())

Sizes = np.ndarray
"""An array of objects: `int` and `Size`."""


@dataclass(frozen=True, eq=False)
class Size:
    """A whole number, not below zero, that is known only when the model runs: what `symbol` stands for, or just one.

    `TypeError` where arithmetic could make something else of it.
    """

    symbol: str | None = None

    def __add__(self, other: object) -> Size:
        return self if _is(other, 0) else _some(other)

    def __sub__(self, other: object) -> Size | int:
        if isinstance(other, Size) and self.is_same(other):
            return 0
        if _is(other, 0):
            return self
        raise TypeError(f"{self} less {other} may be below zero")

    def __mul__(self, other: object) -> Size | int:
        if _is(other, 0):
            return 0
        return self if _is(other, 1) else _some(other)

    def __floordiv__(self, other: object) -> Size:
        if not isinstance(other, int) or other < 1:
            raise TypeError(f"{self} over {other}")
        return self if other == 1 else Size()

    def __eq__(self, other: object) -> bool:
        """A number below zero is none; whether another one is, nobody knows but of itself."""
        if isinstance(other, Size) and self.is_same(other):
            return True
        if isinstance(other, int) and other < 0:
            return False
        raise TypeError(f"{self} may be {other}")

    __radd__, __rmul__, __hash__ = __add__, __mul__, None  # type: ignore[assignment]

    def is_same(self, other: Size) -> bool:
        return self is other or (self.symbol is not None and self.symbol == other.symbol)


def _is(value: object, number: int) -> bool:
    return isinstance(value, int) and value == number


def _some(other: object) -> Size:
    if isinstance(other, Size) or (isinstance(other, int) and other >= 0):
        return Size()
    raise TypeError(f"a size and {other}")


def of_shape(proto: onnx.NodeProto, kind: TensorType | None) -> Sizes | None:
    """What a Shape (ai.onnx 1 to 25) reads off a value of this type."""
    bounds = {a.name: helper.get_attribute_value(a) for a in proto.attribute if not a.ref_attr_name}
    if kind is None or kind.shape is None or len(bounds) < len(proto.attribute):
        return None
    read = kind.shape[bounds.get("start") : bounds.get("end")]
    return np.array([d if isinstance(d, int) else Size(d) for d in read], object)


class _SizeDomain(FloatDomain):
    """Whole numbers and sizes. Division is of what is not below zero, so that all ways of rounding agree."""

    def divide(self, a: Sizes, b: Sizes) -> Sizes:
        return np.asarray(_QUOTIENT(a, b), object)


def _quotient(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and min(a, b) < 0:
        raise TypeError(f"{a} over {b} may be rounded up")
    return a // b


_QUOTIENT = np.frompyfunc(_quotient, 2, 1)
_ASKING: Mapping[str, Callable[..., np.ndarray]] = {"Equal": np.equal, "Where": np.where}


def computed(proto: onnx.NodeProto, node: Node | None, dtype: str, operands: Sequence[np.ndarray]) -> np.ndarray | None:
    """What an operator of ai.onnx makes of whole numbers and sizes: such again, or answers; None where nobody knows.

    `node` is the operator as it is understood, if it is, `dtype` the element type of its result.
    """
    if (
        len(proto.output) != 1
        or dtype not in _WHOLE
        or (node.op not in _MOVING if node else proto.op_type not in _ASKING)
    ):
        return None
    if proto.op_type == "Cast":
        return operands[0]
    try:
        values = (
            OPERATORS[node.op].evaluate(_SizeDomain(), node.attributes, operands)[0]
            if node
            else _ASKING[proto.op_type](*operands)
        )
        return _settled(np.asarray(values), dtype)
    except (TypeError, ValueError, IndexError, ZeroDivisionError, OverflowError):
        return None


def _settled(values: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers of this element type where all of them are numbers."""
    is_open = values.dtype != object or any(isinstance(value, Size) for value in values.flat)
    return values if is_open else values.astype(dtype)


def target(sizes: Sizes, shape: Sequence[Dimension]) -> tuple[int, ...] | None:
    """Of a Reshape of a value of this shape to these sizes, in numbers alone: 0 copies a dimension, -1 is what is left.

    None where that does not say it all. What is left beside copied dimensions must be a number: of a value without
    elements it could be any.
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


def typed(proto: onnx.NodeProto, kind: TensorType, operands: Sequence[np.ndarray | None]) -> TensorType | None:
    """The type of what an operator of ai.onnx makes of a first operand of this type, from the operands that are numbers
    and sizes. None for most operators, and where nothing follows.
    """
    match proto.op_type, [None if operand is None else list(operand.astype(object).flat) for operand in operands]:
        case "Expand", [_, [*sizes]] if kind.shape is not None:
            return _expanded(kind, tuple(map(_dimension, sizes)))
        case "Range", [[start], [Size() as limit], [step]] if _is(start, 0) and _is(step, 1):
            return TensorType(kind.dtype, (limit.symbol,))
        case "Reshape", [_, [*sizes]] if not any(_is(size, 0) for size in sizes):
            return TensorType(kind.dtype, tuple(map(_dimension, sizes)))
        case "Slice", [_, [*starts], [*ends], [*axes]] if kind.shape is not None:
            return _sliced(kind, starts, ends, axes)
        case "Slice", [_, [*starts], [*ends], [*axes], [*steps]] if all(_is(step, 1) for step in steps):
            return None if kind.shape is None else _sliced(kind, starts, ends, axes)
    return None


def _dimension(size: int | Size) -> Dimension:
    """None for -1, which leaves it to others."""
    return size.symbol if isinstance(size, Size) else size if size >= 0 else None


def _expanded(kind: TensorType, shape: tuple[Dimension, ...]) -> TensorType | None:
    try:
        return TensorType(kind.dtype, broadcast([kind.shape or (), shape], "Expand"))
    except TypeInferenceError:
        return None


def _sliced(kind: TensorType, starts: list[Any], ends: list[Any], axes: list[int]) -> TensorType | None:
    """Only what is on the axes that are named is cut, and what is cut from 0 to a size is at most of that size."""
    result = list(kind.shape or ())
    if not len(starts) == len(ends) == len(axes) or not all(-len(result) <= axis < len(result) for axis in axes):
        return None
    for axis, start, end in zip(axes, starts, ends, strict=True):
        result[axis] = _smaller(result[axis], end) if _is(start, 0) and isinstance(end, Size) else None
    return TensorType(kind.dtype, tuple(result))


def _smaller(dimension: Dimension, size: Size) -> Dimension:
    if size.symbol is None or dimension in (None, 1):
        return None
    if isinstance(dimension, int):
        return at_most(size.symbol, dimension)
    return dimension if dimension == size.symbol else None
