"""Original and rewritten model at several sizes, in a report."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlflow.equivalence.report import EquivalenceReport
from rlflow.optimise.reported.latency import LatencyChange, latencies_json
from rlflow.runtime.sizes import Size


@dataclass(frozen=True)
class AtSize:
    """Original and rewritten model at one of several sizes; `latency` is empty where there was no time for it."""

    size: Size
    equivalence: EquivalenceReport
    latency: Mapping[str, LatencyChange] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """One line of a table."""
        changes = "; ".join(change.summary for change in self.latency.values()) or "not timed"
        return f"{self.size}: {changes}; largest relative error {self.equivalence.max_relative_error:.1e}"

    def to_json(self) -> dict[str, Any]:
        return {
            "shapes": shapes_json(self.size.shapes),
            "latency": latencies_json(self.latency),
            "equivalence": equivalence_json(self.equivalence),
        }


def shapes_json(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, list[int]]:
    """The shapes of inputs by name."""
    return {name: list(shape) for name, shape in shapes.items()}


def equivalence_json(report: EquivalenceReport) -> dict[str, Any]:
    """The comparison as the document type `Equivalence` has it."""
    kept = ("equivalent", "tolerance", "draws", "non_vacuous_draws", "reason")
    return {name: getattr(report, name) for name in kept} | report.errors_json()
