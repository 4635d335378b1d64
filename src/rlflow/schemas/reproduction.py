"""Kinds of reproduction along a document: its type says how each figure is the same when it is computed again.

    improvement_percent: Annotated[Percent, reproduces(Kind.EQUAL)]

    top(Evaluation).child("bert").child("greedy").child("optimisation_s").kind    # Kind.TIMING

What is said holds for all that lies below it. Where several annotations stand on the way to a figure, the loosest of
them holds: a count is equal again, but not one that follows from a trained network.

The invariant: `Place.child` leads through a type as a key or an index leads through a document that follows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rlflow.schemas.figures import REPRODUCES, Kind
from rlflow.schemas.forms import Form


@dataclass(frozen=True)
class Place:
    """A place in the documents of a type: its path, its form, and how figures there reproduce.

    `form` is None where the type has nothing, `kind` is None where nothing on the way there says it.
    """

    path: str
    form: Form | None
    kind: Kind | None

    @classmethod
    def of(cls, path: str, form: Form | None, above: Kind | None) -> Place:
        """The place of a form, below one of the kind `above`."""
        kinds = [Kind(kind) for kind in (above, *(form.says(REPRODUCES) if form else ())) if kind is not None]
        return cls(path, form, max(kinds, key=list(Kind).index, default=None))

    def child(self, key: str | int) -> Place:
        """The place under a key of an object or an index of an array."""
        return self._below(str(key), self.form.child(key) if self.form else None)

    def children(self) -> Iterator[Place]:
        """The places under all keys and indices that the type tells apart; `*` and patterns stand for others."""
        below = self.form.children | self.form.others if self.form else {}
        return (self._below(key, form) for key, form in below.items())

    def _below(self, key: str, form: Form | None) -> Place:
        return Place.of(f"{self.path}/{key}", form, self.kind)


def top(kind: Any) -> Place:
    """The place of a whole document of the type `kind`."""
    return Place.of("", Form.of(kind), None)
