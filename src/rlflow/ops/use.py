"""Uses of operands: what an operator makes of them, as far as that says which values make sense.

A model is run on drawn inputs, and not every number is one that it can be run on: what a Gather looks rows up with must
be a row, what a Sqrt reads may not be negative. Each operator says so of its own operands, by a few readings
(`ops/readings.py`, `ops/turns.py`); `runtime/input_domains.py` follows them from the outputs of a model to its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Protocol, TypeVar

_Number = TypeVar("_Number", int, float)
_ANYTHING = (-inf, inf)


@dataclass(frozen=True)
class Use:
    """The knowledge of a value that those who read it give.

    `index` is the range of integers, ends included, with which the model runs at all; None if it indexes nothing.
    `domain` is the interval of numbers on which it is defined. `is_mask` says that it is 1 for what counts and 0 for
    what does not, `is_complement` the other way round, `is_divisor` that it may not be zero, and `is_whole` that every
    value of an integer type is meant: pixels and quantised numbers. `sizes` are the dimensions that it must hold, where
    it is the shape of a value whose type is declared.

    The others say where to look for a fault: `turns` are the numbers at which something else begins, `near` those that
    it reaches through rounding, and `reach` the largest of either behind what it goes into (`ops/turns.py`). What
    `is_count` may be a size or a number of times, so that only small ones are safe; what `is_dividend` may not be the
    lowest integer. Elements of what `is_summed` meet in sums, of what `is_mixed` in ways that their order decides.
    """

    index: tuple[int, int] | None = None
    domain: tuple[float, float] = _ANYTHING
    is_mask: bool = False
    is_complement: bool = False
    is_divisor: bool = False
    is_whole: bool = False
    sizes: tuple[int | str, ...] | None = None
    turns: frozenset[float] = frozenset()
    near: frozenset[float] = frozenset()
    reach: float = 0.0
    is_count: bool = False
    is_summed: bool = False
    is_dividend: bool = False
    is_mixed: bool = False

    def __or__(self, other: Use) -> Use:
        """Combine two readers' uses of a value: ranges meet, purposes add up."""
        return Use(
            _meet(self.index, other.index) if self.index and other.index else self.index or other.index,
            _meet(self.domain, other.domain),
            self.is_mask or other.is_mask,
            self.is_complement or other.is_complement,
            self.is_divisor or other.is_divisor,
            self.is_whole or other.is_whole,
            self.sizes if other.sizes is None else other.sizes,
            self.turns | other.turns,
            self.near | other.near,
            max(self.reach, other.reach),
            self.is_count or other.is_count,
            self.is_summed or other.is_summed,
            self.is_dividend or other.is_dividend,
            self.is_mixed or other.is_mixed,
        )

    def required(self) -> Use:
        """The part without which the model does not run, and nothing of what only makes sense."""
        return Use(index=self.index, sizes=self.sizes)

    def behind(self) -> Use:
        """The part that holds for whatever a value is computed of."""
        reach = max((abs(t) for t in self.turns | self.near), default=0.0)
        return Use(
            reach=max(reach, self.reach),
            is_count=self.is_count or self.is_divisor or self.index is not None or self.sizes is not None,
            is_summed=self.is_summed,
            is_dividend=self.is_dividend,
            is_mixed=self.is_mixed,
        )


NO_USE = Use()


def _meet(left: tuple[_Number, _Number], right: tuple[_Number, _Number]) -> tuple[_Number, _Number]:
    """The common part of two ranges; the first where there is none."""
    low, high = max(left[0], right[0]), min(left[1], right[1])
    return (low, high) if low <= high else left


class Application(Protocol):
    """A node of a model, as far as readings ask about it. Operands are named by their places."""

    @property
    def operands(self) -> int:
        """The number of operands, those that are left out among them."""

    @property
    def declared_dimensions(self) -> tuple[int | str, ...] | None:
        """The dimensions that the model declares of the first result."""

    def is_stored(self, place: int) -> bool:
        """Return True if the operand is a weight."""

    def number(self, place: int) -> float | None:
        """The value of an operand that is a stored scalar."""

    def shape(self, place: int) -> tuple[int, ...]:
        """The operand's shape, with 0 where a dimension is not known; empty where nothing is."""

    def numbers(self, place: int) -> list[float]:
        """A few of the different values of an operand that is stored, none of one that is not."""

    def range_of(self, place: int) -> tuple[float, float]:
        """The lowest and the highest number of the integer type of a stored operand."""

    def real(self, name: str, default: float) -> float:
        """The attribute of this name, a float."""

    def integer(self, *names: str) -> int:
        """The attribute under one of these names, 0 by default."""

    def element_type(self, name: str) -> str:
        """The element type that an attribute names."""


Reading = Callable[[Application, Use], Iterator[tuple[int, Use]]]
"""Given a node and what is known of its first result, what is known of some of its operands, each by its place."""
