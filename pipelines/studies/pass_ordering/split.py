"""The division of a dataset into programs to train on and held-out ones, by family.

    split = split_of(backend.sources(), ["gpt2"], training_graphs=60, held_out_graphs=8)

A family is an architecture with its forward passes, training steps and sizes. None has programs on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlflow.errors import InputError
from rlflow.passes.backend import Source


@dataclass(frozen=True)
class Split:
    """Programs to train on, and the held-out ones by family."""

    training: tuple[str, ...]
    held_out: Mapping[str, tuple[str, ...]]

    @property
    def all_held_out(self) -> tuple[str, ...]:
        """The held-out programs of all families."""
        return tuple(name for names in self.held_out.values() for name in names)


def split_of(
    sources: Sequence[Source], families: Sequence[str], *, training_graphs: int, held_out_graphs: int
) -> Split:
    """Divide by family, and choose evenly: of each held-out family so many, of all the others together so many.

    `InputError` if the dataset has no such family, or nothing is left to train on.
    """
    by_family: dict[str, list[str]] = {}
    for source in sources:
        by_family.setdefault(source.family, []).append(source.name)
    if unknown := [family for family in families if family not in by_family]:
        raise InputError(f"there is no family {unknown[0]!r} in this dataset: choose among {', '.join(by_family)}")
    others = [name for family, names in by_family.items() if family not in families for name in names]
    if not others:
        raise InputError("no family is left to train on: hold out fewer")
    held_out = {family: _evenly(by_family[family], held_out_graphs) for family in families}
    return Split(_evenly(others, training_graphs), held_out)


def _evenly(names: Sequence[str], wanted: int) -> tuple[str, ...]:
    """Choose so many names at equal distances, or all if there are no more."""
    count = min(wanted, len(names))
    return tuple(names[number * len(names) // count] for number in range(count))
