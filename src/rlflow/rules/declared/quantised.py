"""Quantised numbers: moved, joined and split as bytes, read in part before all else, and quantised once.

An exporter of quantised models writes DequantizeLinear before and QuantizeLinear behind each operator, so that data is
moved as floats of four bytes, and a slice of a result goes no further up than to the next quantisation. With one scale
and one zero point for all elements, both are functions of elements, and all laws here are exact to the bit: movements
go where the bytes are, behind the one and before the other, and meet there. Where what was dequantised is quantised by
the same scale again, it is what it was (`ops/quantisation.py` proves it).

All laws hold for int8 as for uint8. Those that move bytes are tried for uint8 alone: ONNX Runtime's kernels for x86
want uint8, and it takes int8 for that only where a QuantizeLinear and its DequantizeLinear are neighbours. With bytes
moved between the two, products behind them were computed in floats (tests/rules/declared/test_quantised.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol

from rlflow.rules.declared.movement import Narrowing, Widening
from rlflow.rules.declared.selections import Gathering, Selection, Slicing
from rlflow.rules.dsl import Attribute, Choice, Partition, Rewrite, Tensor, false_control, rule, rules
from rlflow.rules.dsl.operators import (
    Concat,
    DequantizeLinear,
    QuantizeLinear,
    Reshape,
    Split,
    Squeeze,
    Transpose,
    Unsqueeze,
)
from rlflow.rules.dsl.vocabulary import Axis, Factor, NewShape, Permutation

FAMILY = "quantised"

ZeroPoint = Annotated[Attribute, Choice(0, 3, 127, 128, -128)]
ElementType = Annotated[Attribute, Choice("int8", "uint8")]
Halves = Annotated[Attribute, Partition("x", axis="k", parts=2)]
Thirds = Annotated[Attribute, Partition("x", axis="k", parts=3)]


@dataclass(frozen=True)
class Quantising:
    """QuantizeLinear by one scale."""

    scale: Factor
    zero_point: ZeroPoint
    to: ElementType

    def __call__(self, x: Tensor) -> Tensor:
        return QuantizeLinear(x, scale=self.scale, zero_point=self.zero_point, to=self.to)

    @property
    def back(self) -> Dequantising:
        """DequantizeLinear by the same scale."""
        return Dequantising(self.scale, self.zero_point)


@dataclass(frozen=True)
class Dequantising:
    """DequantizeLinear by one scale."""

    scale: Factor
    zero_point: ZeroPoint

    def __call__(self, x: Tensor) -> Tensor:
        return DequantizeLinear(x, scale=self.scale, zero_point=self.zero_point)


class Movement(Protocol):
    """A change of order or of shape that keeps all elements of a tensor."""

    def __call__(self, x: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Transposing:
    """A transpose."""

    p: Permutation

    def __call__(self, x: Tensor) -> Tensor:
        return Transpose(x, perm=self.p)


@dataclass(frozen=True)
class Reshaping:
    """A reshape."""

    t: NewShape

    def __call__(self, x: Tensor) -> Tensor:
        return Reshape(x, shape=self.t)


@dataclass(frozen=True)
class Squeezing:
    """An axis of length one goes."""

    v: Narrowing

    def __call__(self, x: Tensor) -> Tensor:
        return Squeeze(x, axes=self.v)


@dataclass(frozen=True)
class Unsqueezing:
    """An axis of length one comes."""

    u: Widening

    def __call__(self, x: Tensor) -> Tensor:
        return Unsqueeze(x, axes=self.u)


@rule("quantise-what-was-dequantised")
def quantise_what_was_dequantised(x: Tensor, quantise: Quantising) -> Rewrite:
    """A byte stands for a number that is quantised to this byte."""
    return Rewrite(quantise(quantise.back(x)), x, profitable_if=[x.is_unsigned])


@rule("quantise-once")
def quantise_once(x: Tensor, quantise: Quantising) -> Rewrite:
    """Numbers that were rounded to whole steps are rounded to them again."""
    return Rewrite(quantise(quantise.back(quantise(x))), quantise(x))


@rules(
    {
        "quantise-before-transpose": {"move": Transposing},
        "quantise-before-reshape": {"move": Reshaping},
        "quantise-before-squeeze": {"move": Squeezing},
        "quantise-before-unsqueeze": {"move": Unsqueezing},
    }
)
def quantise_before_movement(x: Tensor, quantise: Quantising, move: Movement) -> Rewrite:
    """Elements are quantised where they come from."""
    return Rewrite(quantise(move(x)), move(quantise(x)), profitable_if=[quantise.to == "uint8"])


@rules(
    {
        "transpose-before-dequantise": {"move": Transposing},
        "reshape-before-dequantise": {"move": Reshaping},
        "squeeze-before-dequantise": {"move": Squeezing},
        "unsqueeze-before-dequantise": {"move": Unsqueezing},
    }
)
def movement_before_dequantise(x: Tensor, dequantise: Dequantising, move: Movement) -> Rewrite:
    """Elements are dequantised where they go to."""
    return Rewrite(move(dequantise(x)), dequantise(move(x)), profitable_if=[x.is_unsigned])


@rules({"slice-before-quantise": {"read": Slicing}, "gather-before-quantise": {"read": Gathering}})
def read_before_quantise(x: Tensor, quantise: Quantising, read: Selection) -> Rewrite:
    """Only those elements are quantised that are read."""
    return Rewrite(read(quantise(x)), quantise(read(x)), where=read.where, profitable_if=[quantise.to == "uint8"])


@rules({"slice-before-dequantise": {"read": Slicing}, "gather-before-dequantise": {"read": Gathering}})
def read_before_dequantise(x: Tensor, dequantise: Dequantising, read: Selection) -> Rewrite:
    """Only those elements are dequantised that are read."""
    return Rewrite(read(dequantise(x)), dequantise(read(x)), where=read.where, profitable_if=[x.is_unsigned])


@rules({"slice-before-rounding": {"read": Slicing}, "gather-before-rounding": {"read": Gathering}})
def read_before_rounding(x: Tensor, quantise: Quantising, read: Selection) -> Rewrite:
    """Only those elements are rounded to whole steps that are read."""
    return Rewrite(read(quantise.back(quantise(x))), quantise.back(quantise(read(x))), where=read.where)


@rules({"dequantise-whole-of-two": 2, "dequantise-whole-of-three": 3})
def dequantise_whole(count: int, x: Tensor, y: Tensor, z: Tensor, dequantise: Dequantising, k: Axis) -> Rewrite:
    """A join of numbers that are dequantised alike is one of bytes."""
    parts = [x, y, z][:count]
    return Rewrite(
        Concat(*map(dequantise, parts), axis=k), dequantise(Concat(*parts, axis=k)), profitable_if=[x.is_unsigned]
    )


@rules(
    {
        "split-quantised-in-two": {"count": 2, "s": Halves},
        "split-quantised-in-three": {"count": 3, "s": Thirds},
    }
)
def split_quantised(x: Tensor, quantise: Quantising, count: int, k: Axis, s: Attribute) -> Rewrite:
    """Parts of a split that are quantised alike are parts of what is quantised."""
    parts, whole = (Split(each, axis=k, split=s) for each in (x, quantise(x)))
    numbers = range(count)
    return Rewrite(
        [quantise(parts[i]) for i in numbers],
        [whole[i] for i in numbers],
        where=[s.length == count],
        profitable_if=[quantise.to == "uint8"],
    )


@rules(
    {
        "dequantise-both-parts": {"count": 2, "s": Halves},
        "dequantise-all-three-parts": {"count": 3, "s": Thirds},
    }
)
def dequantise_parts(x: Tensor, dequantise: Dequantising, count: int, k: Axis, s: Attribute) -> Rewrite:
    """Bytes are split, and their parts dequantised."""
    parts, whole = (Split(each, axis=k, split=s) for each in (x, dequantise(x)))
    numbers = range(count)
    return Rewrite(
        [whole[i] for i in numbers],
        [dequantise(parts[i]) for i in numbers],
        where=[s.length == count],
        profitable_if=[x.is_unsigned],
    )


@false_control("quantise-by-another-scale", of="quantise-what-was-dequantised")
def quantise_by_another_scale(x: Tensor, quantise: Quantising, other: Factor) -> Rewrite:
    """False: in other steps, the number is another one."""
    return Rewrite(quantise(Dequantising(other, quantise.zero_point)(x)), x)


@false_control("quantise-from-another-zero", of="quantise-what-was-dequantised")
def quantise_from_another_zero(x: Tensor, quantise: Quantising, other: ZeroPoint) -> Rewrite:
    """False: counted from another zero, the number is another one."""
    return Rewrite(quantise(Dequantising(quantise.scale, other)(x)), x)


@false_control("rounding-changes-nothing", of="quantise-once")
def rounding_changes_nothing(x: Tensor, quantise: Quantising) -> Rewrite:
    """False: between two steps, a number was rounded."""
    return Rewrite(quantise.back(quantise(x)), x)


@false_control("join-of-different-steps", of="dequantise-whole-of-two")
def join_of_different_steps(x: Tensor, y: Tensor, dequantise: Dequantising, other: Factor, k: Axis) -> Rewrite:
    """False: each part has steps of its own."""
    parts = dequantise(x), Dequantising(other, dequantise.zero_point)(y)
    return Rewrite(Concat(*parts, axis=k), dequantise(Concat(x, y, axis=k)))
