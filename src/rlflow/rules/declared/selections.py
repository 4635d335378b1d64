"""Selections: the part of a tensor along one axis that a Slice or a Gather reads.

Laws that hold for every selection are declared over one of these registries, as `slice-before-softmax` is together with
`gather-before-softmax`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rlflow.rules.dsl import Condition, Tensor, Value, ints, reads_some
from rlflow.rules.dsl.operators import Gather, Slice
from rlflow.rules.dsl.vocabulary import AnyAxis, AnySlice, Extent, IndexRow, Indices


class Selection(Protocol):
    """A part of a tensor along `axis`: `read(x)` is that part of x. It is one along one axis where `where` holds."""

    @property
    def axis(self) -> Value: ...

    @property
    def where(self) -> list[Condition]: ...

    def __call__(self, x: Tensor) -> Tensor: ...

    def along(self, axis: Value, x: Tensor) -> Tensor:
        """The same part along another axis."""
        ...

    def is_some_of(self, x: Tensor) -> Condition:
        """The part has elements wherever x has."""
        ...


class Extract(Protocol):
    """A part of a tensor along an axis that the rule names: `read(x, ROWS)`."""

    def __call__(self, x: Tensor, axis: int) -> Tensor: ...

    def is_some_of(self, x: Tensor, axis: int) -> Condition:
        """The part has elements wherever x has."""
        ...


@dataclass(frozen=True)
class Slicing:
    """A slice along any axis."""

    part: AnySlice

    @property
    def axis(self) -> Value:
        return self.part["axes"][0]

    @property
    def where(self) -> list[Condition]:
        return [self.part["axes"].length == 1]

    def __call__(self, x: Tensor) -> Tensor:
        return Slice(x, **self.part)

    def along(self, axis: Value, x: Tensor) -> Tensor:
        return Slice(x, **{**self.part, "axes": ints(axis)})

    def is_some_of(self, x: Tensor) -> Condition:
        return reads_some(x.dim(self.axis), *(self.part[name][0] for name in ("starts", "ends", "steps")))


@dataclass(frozen=True)
class Gathering:
    """A gather along any axis, whose place the axes of the indices take."""

    axis: AnyAxis
    i: Indices

    @property
    def where(self) -> list[Condition]:
        return []

    def __call__(self, x: Tensor) -> Tensor:
        return Gather(x, self.i, axis=self.axis)

    def along(self, axis: Value, x: Tensor) -> Tensor:
        return Gather(x, self.i, axis=axis)

    def is_some_of(self, x: Tensor) -> Condition:
        return self.i.elements > 0


@dataclass(frozen=True)
class GatheringRow(Gathering):
    """A gather by a vector of indices along any axis, which keeps the rank."""

    i: IndexRow


@dataclass(frozen=True)
class SlicingAlong:
    """A slice along an axis that the rule names."""

    extent: Extent

    def __call__(self, x: Tensor, axis: int) -> Tensor:
        return Slice(x, axes=[axis], **self.extent)

    def is_some_of(self, x: Tensor, axis: int) -> Condition:
        return reads_some(x.dim(axis), *(self.extent[name][0] for name in ("starts", "ends", "steps")))


@dataclass(frozen=True)
class GatheringAlong:
    """A gather by a vector of indices along an axis that the rule names."""

    i: IndexRow

    def __call__(self, x: Tensor, axis: int) -> Tensor:
        return Gather(x, self.i, axis=axis)

    def is_some_of(self, x: Tensor, axis: int) -> Condition:
        return self.i.elements > 0


SELECTIONS = ({"read": Slicing}, {"read": Gathering})
"""Slices, and gathers by indices of any rank: axes before theirs move."""

SELECTIONS_OF_RANK = ({"read": Slicing}, {"read": GatheringRow})
"""Slices, and gathers that keep the rank as slices do: no other axis moves."""

EXTRACTS = ({"read": SlicingAlong}, {"read": GatheringAlong})
"""The same along an axis that the rule names."""
