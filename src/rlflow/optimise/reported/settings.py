"""Original and rewritten model in several runtimes and precisions, in a report."""

import math
from dataclasses import dataclass
from typing import Any

from rlflow.optimise.reported.latency import LatencyChange
from rlflow.runtime.runtimes import RUNTIMES


@dataclass(frozen=True)
class InSetting:
    """Original and rewritten model in one of several settings, or why nothing is known of them there.

    Errors are relative, against the original as written. `is_right` says that the original's own is one of rounding, or
    one that the user accepts, `is_equivalent` the same of the rewritten model, and `is_better` that this is the one to
    take there. `rewriting` is what it changes there, if there is one, and `best` compares the better of both in the
    first setting with the better of both in this one.
    """

    setting: str
    error_before: float = 0.0
    error_after: float = 0.0
    is_right: bool = False
    is_equivalent: bool = False
    is_better: bool = False
    rewriting: LatencyChange | None = None
    best: LatencyChange | None = None
    left_because: str = ""

    @property
    def summary(self) -> str:
        """One line of a table."""
        runtime = RUNTIMES.get(self.setting)
        where = f"{runtime.name} {runtime.version}, {runtime.precision}"
        if self.best is None:
            return f"{where}: {self.left_because}"
        original = f"{where}: error {self.error_before:.1e}{'' if self.is_right else ', beyond the tolerance'}"
        best = f"{self.best.verdict.ratio:.3f} times as fast as the first line's"
        if self.rewriting is None:
            return f"{original}; {self.best.after_ms:.3f} ms, {best}"
        different = "" if self.is_equivalent else ", which is not equivalent"
        return (
            f"{original}; rewritten {self.error_after:.1e}{different}; {self.rewriting.summary}; "
            f"the faster of the two is {best}"
        )

    def to_json(self) -> dict[str, Any]:
        runtime = RUNTIMES.get(self.setting)
        errors = (self.error_before, self.error_after)
        return {
            "setting": self.setting,
            "runtime": runtime.name,
            "version": runtime.version,
            "precision": runtime.precision,
            "errors": [error if math.isfinite(error) else None for error in errors],
            "is_right": self.is_right,
            "is_equivalent": self.is_equivalent,
            "is_better": self.is_better,
            "rewriting": None if self.rewriting is None else self.rewriting.to_json(),
            "best": None if self.best is None else self.best.to_json(),
            "left_because": self.left_because,
        }
