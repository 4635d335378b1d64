"""Subnormal weights that were set to zero, and those that were not, in a report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlflow.optimise.reported.latency import LatencyChange, latencies_json
from rlflow.subnormal.flush import Decayed
from rlflow.subnormal.trial import MARGIN


@dataclass(frozen=True)
class SubnormalReport:
    """The weights with numbers that are subnormal or nearly so: those in which they are zero now, with the `error` that
    this makes, and those that are `left` as they are.

    `latency` is that of the original and of the model without them, empty where a round of it would have taken too
    long; `run_ratio` compares a single run of each. `left_because` says why none was set to zero.
    """

    weights: tuple[Decayed, ...] = ()
    left: tuple[Decayed, ...] = ()
    error: float | None = None
    latency: Mapping[str, LatencyChange] = field(default_factory=dict)
    run_ratio: float | None = None
    left_because: str = ""

    @property
    def numbers(self) -> int:
        """Numbers that were set to zero."""
        return sum(each.numbers for each in self.weights)

    @property
    def stay(self) -> int:
        """Subnormal numbers that stay as they are."""
        return sum(each.subnormal for each in self.left)

    @property
    def bound(self) -> float:
        """The sum of their sizes: a sum of products loses at most so many times its largest operand."""
        return sum(each.magnitude for each in self.weights)

    @property
    def reason(self) -> str:
        """The gain, as a clause."""
        ratio = next((change.verdict.ratio for change in self.latency.values()), self.run_ratio)
        how = "" if self.latency else " by a run of each"
        here = "" if ratio is None else f", on this processor {ratio:.2f} times as fast{how}"
        subnormal = sum(each.subnormal for each in self.weights)
        return (
            f"{self.numbers} numbers in {_count(self.weights, 'weight')}, of which {subnormal} were subnormal, are zero"
            f"{here}; processors of Intel may take a hundred times as long with them"
        )

    @property
    def summary(self) -> str:
        """Sentences on what was set to zero and how it was proven, and on what is left."""
        where = _count(self.left, "weight")
        if not self.weights:
            return (
                f"Mind that {self.stay} numbers in {where} are subnormal, with which processors of Intel may take a "
                f"hundred times as long; they stay: {self.left_because}. `rlflow doctor` says what else helps."
            )
        others = f" In {where}, {self.stay} more stay as they are." if self.left else ""
        return (
            f"Subnormal weights: a sum of products loses at most {self.bound:.1e} times its largest operand, and "
            f"outputs {self.error:.1e} of their largest value; none would lose more than the tolerance if they were "
            f"{MARGIN:.0e} times as large.{others}"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "weights": len(self.weights),
            "numbers": self.numbers,
            "subnormal": sum(each.subnormal for each in self.weights),
            "left": self.stay,
            "bound": self.bound,
            "max_relative_error": self.error,
            "margin": MARGIN,
            "latency": latencies_json(self.latency),
            "run_ratio": self.run_ratio,
            "left_because": self.left_because,
        }


def _count(items: Sequence[Any], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"
