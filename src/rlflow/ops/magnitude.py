"""Bounds on what an operator computes, from bounds on its operands: Tanh(x) is at most 1, whatever x is.

    largest("Add", {}, [Magnitude(1.0), Magnitude(0.5)], types)      # 1.5

A bound is on absolute values, and says nothing of NaN. Operators of which nothing is said here have no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, prod, sqrt
from typing import NamedTuple

from rlflow.ir.node import Attributes
from rlflow.ir.tensor_type import TensorType


class Magnitude(NamedTuple):
    """`largest` is no less than any absolute value; `column_sum`, of a known matrix, a bound on columns' sums."""

    largest: float
    column_sum: float = inf


_Operands = Sequence[Magnitude]
_Types = Sequence[TensorType]
_Bound = Callable[[Attributes, _Operands, _Types], float]


def largest(op: str, attributes: Attributes, operands: _Operands, types: _Types) -> float:
    """The least known bound on the absolute values of all results, infinity where none is known."""
    bound = _BOUNDS.get(op, _unknown)(attributes, operands, types)
    return inf if bound != bound else bound  # zero times infinity is not known


def _unknown(attributes: Attributes, operands: _Operands, types: _Types) -> float:
    return inf


def _one(attributes: Attributes, operands: _Operands, types: _Types) -> float:
    return 1.0


def _stored(attributes: Attributes, operands: _Operands, types: _Types) -> float:
    values = [number for value in attributes.values() for number in (value if isinstance(value, tuple) else (value,))]
    return max((abs(value) for value in values if isinstance(value, float | int)), default=inf)


def _of_first(attributes: Attributes, operands: _Operands, types: _Types) -> float:
    return operands[0].largest


def _of_any(attributes: Attributes, operands: _Operands, types: _Types) -> float:
    return max(operand.largest for operand in operands)


def _sum(attributes: Attributes, operands: _Operands, types: _Types) -> float:
    return sum(operand.largest for operand in operands)


def _product(attributes: Attributes, operands: _Operands, types: _Types) -> float:
    return prod(operand.largest for operand in operands)


def _clipped(attributes: Attributes, operands: _Operands, types: _Types) -> float:
    bounds = [attributes.get(name) for name in ("min", "max")]
    known = [abs(bound) for bound in bounds if isinstance(bound, float | int)]
    return max(known) if len(known) == len(bounds) else inf


def _padded(attributes: Attributes, operands: _Operands, types: _Types) -> float:
    filling = attributes.get("constant_value", 0.0)
    return max(operands[0].largest, abs(filling)) if isinstance(filling, float | int) else inf


def _matrix_product(attributes: Attributes, operands: _Operands, types: _Types) -> float:
    a, b = operands
    return a.largest * min(b.column_sum, _size(types[0], -1) * b.largest)


def _normalised(attributes: Attributes, operands: _Operands, types: _Types) -> float:
    """A row whose mean square is at most one has no element above the root of its length."""
    length = _size(types[0], -1) if attributes.get("axis") == -1 else inf
    return sqrt(length) * operands[1].largest + sum(shift.largest for shift in operands[2:])


def _size(tensor_type: TensorType, axis: int) -> float:
    size = tensor_type.shape[axis] if tensor_type.shape else None
    return size if isinstance(size, int) else inf


_BOUNDS: Mapping[str, _Bound] = {
    "Constant": _stored,
    **dict.fromkeys(("Softmax", "Sigmoid", "Tanh", "Erf"), _one),
    **dict.fromkeys(("Identity", "Neg", "Relu", "Gelu", "ReduceMean", "MaxPool", "GlobalAveragePool"), _of_first),
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split", "Gather"), _of_first),
    "Concat": _of_any,
    **dict.fromkeys(("Add", "Sub", "Sum"), _sum),
    "Mul": _product,
    "MatMul": _matrix_product,
    "Clip": _clipped,
    "Pad": _padded,
    "LayerNormalization": _normalised,
    "RMSNormalization": _normalised,
}
