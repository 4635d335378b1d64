"""The measured latency of two models, in a report."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlflow.runtime.timing.verdict import Verdict


@dataclass(frozen=True)
class LatencyChange:
    """Measured milliseconds of a run before and after, and which is less, after rounds of which some were retaken."""

    before_ms: float
    after_ms: float
    verdict: Verdict
    retaken: int = 0

    @property
    def summary(self) -> str:
        """Both times, how they compare and how sure that is, as a clause."""
        words = {
            "faster": f"{self.verdict.ratio:.3f} times as fast",
            "slower": f"slower, {self.verdict.ratio:.3f} times as fast",
            "same": "the same within the margin",
            "undecided": "no difference beyond noise",
        }
        retaken = f", {self.retaken} taken again beside a slow machine" if self.retaken else ""
        decision = words[self.verdict.decision]
        return f"{self.before_ms:.3f} ms -> {self.after_ms:.3f} ms, {decision} ({self.verdict}{retaken})"

    def to_json(self) -> dict[str, Any]:
        """Return the change as the document type `Change` has it."""
        verdict = self.verdict
        return {
            "latency_before_ms": self.before_ms,
            "latency_after_ms": self.after_ms,
            "decision": verdict.decision,
            "ratio": verdict.ratio,
            "ratio_interval": [verdict.low, verdict.high] if verdict.bounded else None,
            "faster_probability": verdict.faster_probability,
            "harmful_probability": verdict.harmful_probability,
            "control_ratio": verdict.control,
            "rounds": verdict.rounds,
            "rounds_retaken": self.retaken,
        }


def latencies_json(latency: Mapping[str, LatencyChange]) -> dict[str, Any]:
    """The change in each setting."""
    return {setting: change.to_json() for setting, change in latency.items()}
