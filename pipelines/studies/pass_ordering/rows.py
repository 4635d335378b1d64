"""The outcomes of one entrant, an agent of one seed or a baseline, on the held-out graphs, as JSON.

row = Row({"gpt2/step": Outcome(operations=608, tried=24, passes=("algsimp", "cse"))})
Row.from_json(row.to_json()) == row
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

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
    """

    outcomes: Mapping[str, Outcome]
    training_s: float = 0.0
    curve: tuple[float, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    open_loop: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Row:
        """Read what `to_json` returned, by way of JSON."""
        outcomes = {
            source: Outcome(**{**outcome, "passes": tuple(outcome["passes"])})
            for source, outcome in written["outcomes"].items()
        }
        return cls(outcomes, written["training_s"], tuple(written["curve"]), written["counts"], written["open_loop"])
