"""The algebra that an operator asks of the elements that it computes with, and so the types for which its laws hold.

An operator that only moves elements (`Domain.structural`) is the same function whatever an element is: a law of such
operators says from where each element comes. The finite field tells any two elements apart, so that a certificate over
it speaks of bytes of every type. A law of operators that add and multiply is one of polynomials with whole
coefficients; it holds in every commutative ring, as the whole numbers of a machine are, which wrap around. All others
are laws of real numbers, and floats are certified for them one by one: in float16 a product overflows that its quotient
does not.

    Transpose(Transpose(x)) = x            any element
    Mul(a, Mul(b, c)) = Mul(b, Mul(a, c))  any ring
    Div(Mul(a, b), c) = Mul(a, Div(b, c))  numbers

The invariant: `Operator.algebra` is the least that the operator's meaning asks (tests/ops/test_algebra.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class Algebra(IntEnum):
    """The demands on elements, each of which comprises those before it."""

    NOTHING = 0
    """They are moved, repeated or left out. Pad puts a number beside them, which the model writes in their type."""
    RING = 1
    """They are added, subtracted and multiplied, and ONNX writes the operator for whole numbers in all its versions."""
    NUMBERS = 2
    """They are divided, compared, rounded, or go through functions. They are summed along axes, which ONNX Runtime does
    to whole numbers in float64.
    """


QUANTISED: Mapping[str, tuple[int, int]] = {"int8": (-128, 127), "uint8": (0, 255)}
"""The element types of quantised numbers, each with its least and its largest."""

_CERTIFIED = frozenset({"float32", "float64"})
COUNTING = frozenset({"int32", "int64"})
"""The element types of whole numbers that count, as sizes and indices do. They wrap around."""

_STORED = frozenset({"bool", "float16", "bfloat16", "int8", "int16", "uint8", "uint16", "uint32", "uint64"})

ELEMENT_TYPES: Mapping[Algebra, frozenset[str]] = {
    Algebra.NUMBERS: _CERTIFIED,
    Algebra.RING: _CERTIFIED | COUNTING,
    Algebra.NOTHING: _CERTIFIED | COUNTING | _STORED,
}
"""The element types for which laws of operators that ask no more hold: numbers of one byte or more, for which ONNX
Runtime has the kernels."""
