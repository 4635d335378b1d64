"""Sizes that are known only when a model runs, and what operators make of them.

Arithmetic on an array of sizes is that of the operators themselves: an array holds numbers (`int`) and `Size`s, and
an operator is evaluated on it in the `SizeDomain` as on numbers, so that Concat([batch], [768]) is [batch, 768]. The
type of a result that a size decides, as that of a Reshape, is inferred by one of the functions below.

Invariant: a `Size` is at least 0. Arithmetic whose result might be anything else, or a comparison that might go either
way, raises `TypeError`, and the computation is given up: no result is ever guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlflow.errors import TypeInferenceError
from rlflow.ir.dimension import at_most
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops.domain import FloatDomain
from rlflow.ops.schema import broadcast

Sizes = np.ndarray
"""An array of objects, each an `int` or a `Size`."""


@dataclass(frozen=True, eq=False)
class Size:
    """A whole number, at least 0, that is known only when the model runs: that of `symbol`, or any if that is None.

    Arithmetic raises `TypeError` if its result might be no such number.
    """

    symbol: str | None = None

    def __add__(self, other: object) -> Size:
        return self if is_number(other, 0) else _some(other)

    def __sub__(self, other: object) -> Size | int:
        if isinstance(other, Size) and self.is_same(other):
            return 0
        if is_number(other, 0):
            return self
        raise TypeError(f"{self} - {other} may be below zero")

    def __mul__(self, other: object) -> Size | int:
        if is_number(other, 0):
            return 0
        return self if is_number(other, 1) else _some(other)

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


def is_number(value: object, number: int) -> bool:
    """Return True if a number or size is certain to be this number."""
    return isinstance(value, int) and value == number


def _some(other: object) -> Size:
    """Return a size of which nothing is known, as the sum or product of a size and `other`."""
    if isinstance(other, Size) or (isinstance(other, int) and other >= 0):
        return Size()
    raise TypeError(f"a size and {other} may give a number below zero")


class SizeDomain(FloatDomain):
    """The domain of whole numbers and sizes; only numbers at least 0 are divided, where all ways of rounding agree."""

    def divide(self, a: Sizes, b: Sizes) -> Sizes:
        return np.asarray(_QUOTIENT(a, b), object)


def _quotient(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and min(a, b) < 0:
        raise TypeError(f"{a} // {b} depends on the way of rounding")
    return a // b


_QUOTIENT = np.frompyfunc(_quotient, 2, 1)


Operands = Sequence[list[Any] | None]
"""The operands of a node as flat lists of numbers and sizes, None for those that are not known."""


def expanded(tensor_type: TensorType, operands: Operands) -> TensorType | None:
    """Infer the type of an Expand, whose operand 1 is the shape to which it broadcasts."""
    match operands:
        case [_, [*sizes]] if tensor_type.shape is not None:
            shape = tuple(map(_dimension, sizes))
            with suppress(TypeInferenceError):
                return TensorType(tensor_type.dtype, broadcast([tensor_type.shape, shape], "Expand"))
    return None


def counted(tensor_type: TensorType, operands: Operands) -> TensorType | None:
    """Infer the type of a Range from 0 to a size."""
    match operands:
        case [[start], [Size() as limit], [step]] if is_number(start, 0) and is_number(step, 1):
            return TensorType(tensor_type.dtype, (limit.symbol,))
    return None


def reshaped(tensor_type: TensorType, operands: Operands) -> TensorType | None:
    """Infer the type of a Reshape, whose operand 1 is the shape; a 0 in it would copy a dimension."""
    match operands:
        case [_, [*sizes]] if not any(is_number(size, 0) for size in sizes):
            return TensorType(tensor_type.dtype, tuple(map(_dimension, sizes)))
    return None


def sliced(tensor_type: TensorType, operands: Operands) -> TensorType | None:
    """Infer the type of a Slice with step 1: other axes stay, and one cut from 0 to a size is at most that."""
    if tensor_type.shape is None:
        return None
    match operands:
        case [_, [*starts], [*ends], [*axes], *steps]:
            if all(step is not None and all(is_number(s, 1) for s in step) for step in steps):
                return _cut(tensor_type.dtype, list(tensor_type.shape), starts, ends, axes)
    return None


def _dimension(size: int | Size) -> Dimension:
    """Return the dimension of this size; None for -1, which stands for the rest."""
    if isinstance(size, Size):
        return size.symbol
    return size if size >= 0 else None


def _cut(dtype: str, shape: list[Dimension], starts: list[Any], ends: list[Any], axes: list[int]) -> TensorType | None:
    if not len(starts) == len(ends) == len(axes) or not all(-len(shape) <= axis < len(shape) for axis in axes):
        return None
    for axis, start, end in zip(axes, starts, ends, strict=True):
        shape[axis] = _smaller(shape[axis], end) if is_number(start, 0) and isinstance(end, Size) else None
    return TensorType(dtype, tuple(shape))


def _smaller(dimension: Dimension, size: Size) -> Dimension:
    """Return the smaller one of a dimension and a size, None if it has no symbol; 1 may be smaller or larger."""
    if size.symbol is None or dimension in (None, 1):
        return None
    if isinstance(dimension, int):
        return at_most(size.symbol, dimension)
    return dimension if dimension == size.symbol else None
