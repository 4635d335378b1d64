"""The verdict on two models: are they equivalent, how far do they differ, and how far can that be trusted?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onnx import ModelProto

from rlflow.equivalence.float64_check import INCONCLUSIVE_FACTOR, Float64Check
from rlflow.equivalence.survey import Survey
from rlflow.equivalence.tolerance import tolerance_of
from rlflow.runtime.runtimes import YARDSTICK, said


@dataclass(frozen=True)
class EquivalenceReport:
    """The verdict on two models, and how far it can be trusted.

    `max_relative_error` is the largest difference over the largest absolute reference value of the same output
    (infinite when the reference is all zero and the other is not); both errors range over finite values of float
    outputs. A draw is vacuous when every reference output is constant, zero or without a finite value: it could not
    tell a wrong model from a right one. `vacuous_outputs` are those that no draw could judge. `worst_draw` counts from
    0. `float64` is the check in float64 where float32 was inconclusive and the check could be made.

    `by_setting` has a report for each setting in which the models were compared, up to the first in which they differ;
    the others' figures are the worst of these, and `worst_setting` says which. `own_error` is the relative error of
    the original itself where it is run in `own_setting`. `is_run` is false of a model that does not load or run.
    `exceptional_draws` are further ones, with NaN or infinities, and `survey` says what the draws are worth.
    """

    equivalent: bool
    reason: str
    max_absolute_error: float
    max_relative_error: float
    tolerance: float
    draws: int
    non_vacuous_draws: int
    worst_output: str | None = None
    vacuous_outputs: tuple[str, ...] = ()
    worst_draw: int | None = None
    float64: Float64Check | None = None
    worst_setting: str | None = None
    own_error: float = 0.0
    own_setting: str = "deployed"
    is_run: bool = True
    exceptional_draws: int = 0
    survey: Survey | None = None
    by_setting: Mapping[str, EquivalenceReport] = field(default_factory=dict)

    @property
    def is_inconclusive(self) -> bool:
        """True if rounding in a badly conditioned model could explain the difference and float64 has not decided."""
        return not self.equivalent and self.float64 is None and self._is_slight

    @property
    def could_tell(self) -> bool:
        """True if a difference would have been likely to show."""
        return self.non_vacuous_draws > 0 and not (self.survey is not None and self.survey.blind)

    @property
    def _is_slight(self) -> bool:
        return self.tolerance < self.max_relative_error <= INCONCLUSIVE_FACTOR * self.tolerance

    @property
    def differs_by_setting(self) -> bool:
        """True if the original itself computes something else as deployed than as written."""
        return self.own_error > self.tolerance

    @property
    def summary(self) -> str:
        """The verdict as one sentence for a person."""
        evidence = f"{self.non_vacuous_draws} of {self.draws} draws informative"
        if self.survey is not None and self.survey.mutants:
            evidence = f"{evidence}; {self.survey.summary}"
        own = f"; {self.own_difference}" if self.differs_by_setting else ""
        if not self.equivalent:
            caveat = "; rounding in a badly conditioned model could explain so little" if self.is_inconclusive else ""
            return f"not equivalent: {self.reason}{caveat}{own} ({evidence})"
        if not self.could_tell:
            return f"no difference, but no drawn input could have shown one ({evidence})"
        because = f", {self.reason}" if self.reason else ""
        errors = (f"{each.max_relative_error:.1e} {said(setting)}" for setting, each in self.by_setting.items())
        told = ", ".join(errors) or f"{self.max_relative_error:.1e}"
        return f"equivalent: largest relative error {told}, tolerance {self.tolerance:.1e}{because}{own} ({evidence})"

    @property
    def own_difference(self) -> str:
        """The difference between the settings in the original itself, as a clause for a person."""
        size = "in NaN, infinities or whole numbers" if math.isinf(self.own_error) else f"by {self.own_error:.1e}"
        return f"the original itself differs {size} between {said(YARDSTICK)} and {said(self.own_setting)}"

    def errors_json(self) -> dict[str, Any]:
        """Return the largest errors, overall and in each setting; infinite ones are null."""
        by_setting = {setting: _errors(report) for setting, report in self.by_setting.items()}
        return {**_errors(self), "own_error": _finite(self.own_error), "by_setting": by_setting}


def _errors(report: EquivalenceReport) -> dict[str, float | None]:
    return {name: _finite(getattr(report, name)) for name in ("max_absolute_error", "max_relative_error")}


def _finite(error: float) -> float | None:
    return error if math.isfinite(error) else None


def not_equivalent(reason: str, structure: ModelProto, draws: int, *, is_run: bool = True) -> EquivalenceReport:
    """Return the verdict on a candidate that cannot be compared with the original of this structure."""
    tolerance = tolerance_of(structure)
    return EquivalenceReport(False, reason, math.inf, math.inf, tolerance, draws, non_vacuous_draws=0, is_run=is_run)
