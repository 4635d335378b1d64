"""The names behind the numbers of `GraphArrays`: operators by index and features by column.

Numbers mean nothing by themselves: `op == 7` is whatever operator stood at place 7 when a model was fitted. So the
vocabulary travels with everything that holds such numbers (rollouts, world models), and a graph that a model is to see
is written in the model's vocabulary (`Featuriser`), not in that of today's code. A feature whose meaning changes gets
another name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlflow.errors import InputError

PADDING = "<padding>"
"""Index 0: never a node."""

OPAQUE = "<opaque>"
"""Any operator that the vocabulary does not have, or of which the library knows nothing but its name."""


@dataclass(frozen=True)
class Vocabulary:
    """`operators[i]` is what index i of `GraphArrays.op` means, `features[j]` what column j of its features holds."""

    operators: tuple[str, ...]
    features: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.operators[:1] != (PADDING,):
            raise InputError(f"vocabulary: the operators must begin with {PADDING}, not with {self.operators[:1]}")
        for what, names in (("operator", self.operators), ("feature", self.features)):
            repeated = sorted({name for name in names if names.count(name) > 1})
            if repeated:
                raise InputError(f"vocabulary: the {what} {', '.join(repeated)} is there more than once")

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Vocabulary:
        """From what `dataclasses.asdict` made of one, by way of JSON."""
        return cls(tuple(written["operators"]), tuple(written["features"]))

    def describe_difference(self, other: Vocabulary) -> str:
        """In what the other one differs, for a message; empty if it does not."""
        parts = []
        for what in ("operators", "features"):
            mine, theirs = getattr(self, what), getattr(other, what)
            changed = [f"without {name}" for name in mine if name not in theirs]
            changed += [f"with {name}" for name in theirs if name not in mine]
            if mine != theirs:
                parts.append(f"{what} {', '.join(changed) or 'in another order'}")
        return "; ".join(parts)
