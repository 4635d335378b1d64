"""The outcomes of one entrant, an agent of one seed or a baseline, on the held-out graphs.

row = Row({"gpt2/step": Outcome(operations=608, tried=24, passes=("algsimp", "cse"))})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import convert

from rlflow.passes.core_set import CoreSet
from rlflow.passes.search import Found


@dataclass(frozen=True)
class Outcome:
    """The best program on one graph: its operations, the passes that were run to find it, and those that lead to it.

    difference: in what its outputs differ from the original's beyond tolerance, or "".
    """

    operations: int
    tried: int = 0
    passes: tuple[str, ...] = ()
    difference: str = ""

    @classmethod
    def of(cls, found: Found, difference: str = "") -> Outcome:
        """Make one of the find of a search."""
        return cls(found.facts.operations, found.tried, found.passes, difference)


@dataclass(frozen=True)
class Row:
    """The outcomes by graph, with the seconds of training, the mean returns over its course, and steps that were known.

    Baselines are not trained. open_loop: of a world model, its errors by the number of passes that it looks ahead.
    core_set: the sequences that were learned, of what runs some (`rlflow.passes.core_set`).
    """

    outcomes: Mapping[str, Outcome]
    training_s: float = 0.0
    curve: tuple[float, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    open_loop: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    core_set: CoreSet = ()


Rows = Mapping[str, Mapping[int, Row]]
"""Entrant -> seed -> row; baselines that nothing is drawn for have the seed 0 alone."""


def rows_of(document: Mapping[str, Any]) -> Rows:
    """The rows of a results file."""
    return convert(document["entrants"], dict[str, dict[int, Row]], str_keys=True)
