"""The comparison of a rewritten model with its original, by running both on drawn inputs.

An error is the largest difference in an output over the largest absolute value expected there. It decides:

    error <= tolerance                          equivalent: rounding explains it (`rlflow.equivalence.tolerance`)
    error <= INCONCLUSIVE_FACTOR * tolerance    inconclusive: rounding in a badly conditioned model may explain it, so
                                                both models are run in float64 (`rlflow.equivalence.float64_check`)
    otherwise                                   not equivalent

If there is no float64 reference, as for a model of float64, an inconclusive error means not equivalent. The report
counts its evidence: a draw whose outputs could not have shown a fault is not informative.

What the original computes is a `Reference`. One that is known saves opening and running the original again, which for
large models is half of the time.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from rlflow.equivalence.difference import Difference, differences
from rlflow.equivalence.drawing import Drawing, Inputs, Reference
from rlflow.equivalence.float64_check import INCONCLUSIVE_FACTOR, Float64Check, FloatRuns, check_in_float64
from rlflow.equivalence.interface import interface_problem
from rlflow.equivalence.survey import Survey
from rlflow.equivalence.tolerance import DOUBLE_EPSILON, coarsest_epsilon, tolerance_of
from rlflow.errors import RLFlowError
from rlflow.runtime.session import Session, Setting, open_session, run, structure_of


@dataclass(frozen=True)
class EquivalenceReport:
    """The verdict on two models, and how far it can be trusted.

    `max_relative_error` is the largest difference over the largest absolute reference value of the same output
    (infinite when the reference is all zero and the other is not); both errors range over finite values of float
    outputs. A draw is vacuous when every reference output is constant, zero or without a finite value: it could not
    tell a wrong model from a right one. `vacuous_outputs` are those that no draw could judge. `worst_draw` counts from
    0. `float64` is the check in float64 where float32 was inconclusive and the check could be made. `exceptional_draws`
    are further ones, with NaN or infinities; `survey` says which mutants of the original all draws tell from it, if
    that was tried.
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
    exceptional_draws: int = 0
    survey: Survey | None = None

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
    def summary(self) -> str:
        """The verdict as one sentence for a person."""
        evidence = f"{self.non_vacuous_draws} of {self.draws} draws informative"
        if self.survey is not None and self.survey.mutants:
            evidence = f"{evidence}; {self.survey.summary}"
        if not self.equivalent:
            caveat = "; rounding in a badly conditioned model could explain so little" if self.is_inconclusive else ""
            return f"not equivalent: {self.reason}{caveat} ({evidence})"
        if not self.could_tell:
            return f"no difference, but no drawn input could have shown one ({evidence})"
        because = f", {self.reason}" if self.reason else ""
        return (
            f"equivalent: largest relative error {self.max_relative_error:.1e}, "
            f"tolerance {self.tolerance:.1e}{because} ({evidence})"
        )


def compare(
    original: ModelProto | Path,
    optimised: ModelProto | Path,
    *,
    draws: int = 3,
    seed: int = 0,
    threads: int = 1,
    setting: Setting = "as_written",
    dimensions: Mapping[str, int] | None = None,
    inputs: Sequence[Mapping[str, np.ndarray]] | None = None,
    reference: Reference | None = None,
    exceptional: bool = False,
) -> EquivalenceReport:
    """Compare interfaces, then outputs on `draws` drawn inputs, or on `inputs` if these are given.

    With a `reference`, which `run_original` or `compare_with_itself` returned, its inputs are taken and the original is
    not run again.

    The optimised model may be for the sizes `dimensions` alone. Dynamic dimensions without a value in `dimensions` get
    small sizes, different ones if the original runs with them, so that swapped axes show. If `exceptional`, models must
    agree on NaN and infinities, too. Both models run in `setting`
    on `threads` threads.

    An optimised model that does not load or run is not equivalent. Raises `RLFlowError` for an original that does not,
    and `InputError` when `draws` is below 1 or `seed` below 0.
    """
    structure = structure_of(original)
    if problem := interface_problem(structure, structure_of(optimised), dimensions):
        return not_equivalent(problem, structure, draws)

    if reference is None:
        session = open_session(original, setting, threads)
        if inputs is None:
            reference = run_original(
                original, session, draws=draws, seed=seed, dimensions=dimensions, exceptional=exceptional
            )
        else:
            reference = Reference(list(map(dict, inputs)), [run(session, each) for each in inputs])
        del session  # its memory, before the candidate is loaded

    try:
        candidate = open_session(optimised, setting, threads)
        actual = [run(candidate, each) for each in reference.inputs]
    except RLFlowError as error:
        return not_equivalent(str(error), structure, len(reference.inputs))
    del candidate
    return _verdict(original, optimised, reference, actual)


def compare_with_itself(original: ModelProto | Path, session: Session, reference: Reference) -> EquivalenceReport:
    """Run a model again, in a session of it, on the inputs of `reference`: what changes from run to run shows."""
    return _verdict(original, original, reference, [run(session, each) for each in reference.inputs])


def run_original(
    original: ModelProto | Path,
    session: Session,
    *,
    draws: int = 3,
    seed: int = 0,
    dimensions: Mapping[str, int] | None = None,
    drawing_s: float = math.inf,
    exceptional: bool = False,
) -> Reference:
    """Run a model, in a session of it, on drawn inputs, with the first sizes of dynamic dimensions at which it runs.

    If `exceptional`, inputs with NaN and with infinities follow, where these say something of the model. When that has
    taken `drawing_s` seconds, no further input is drawn after the first. Raises as `compare` does.
    """
    end_s = time.perf_counter() + drawing_s
    return Drawing(structure_of(original), seed).runs(session, draws, dimensions or {}, end_s, exceptional=exceptional)


def not_equivalent(reason: str, structure: ModelProto, draws: int) -> EquivalenceReport:
    """Return the verdict on a candidate that cannot be compared with the original of this structure."""
    return EquivalenceReport(False, reason, math.inf, math.inf, tolerance_of(structure), draws, non_vacuous_draws=0)


def drawn_inputs(
    model: ModelProto | Path, *, draws: int = 3, seed: int = 0, dimensions: Mapping[str, int] | None = None
) -> list[Inputs]:
    """Return the inputs on which `compare` runs this original; raises as `compare` does."""
    session = open_session(model, "as_written")
    return run_original(model, session, draws=draws, seed=seed, dimensions=dimensions).inputs


def _verdict(
    original: ModelProto | Path, optimised: ModelProto | Path, reference: Reference, actual: list[dict[str, Any]]
) -> EquivalenceReport:
    """Judge the outputs of the optimised model, in float64 if these alone do not decide."""
    structure = structure_of(original)
    tolerance = tolerance_of(structure)
    pairs = zip(reference.outputs, actual, strict=True)
    report = _report([differences(*pair, tolerance) for pair in pairs], tolerance, reference.exceptional)
    if report.is_inconclusive and coarsest_epsilon(structure) > DOUBLE_EPSILON:
        return _checked_in_float64(report, original, optimised, FloatRuns(reference.inputs, reference.outputs, actual))
    return report


def _checked_in_float64(
    report: EquivalenceReport, original: ModelProto | Path, optimised: ModelProto | Path, runs: FloatRuns
) -> EquivalenceReport:
    """Decide an inconclusive report in float64; return it as it is if the models cannot be run in float64."""
    try:
        check = check_in_float64(original, optimised, runs, report.tolerance)
    except RLFlowError:
        return report
    reason = check.summary if check.confirms else f"{report.reason}; {check.summary}"
    return replace(report, equivalent=check.confirms, reason=reason, float64=check)


def _report(by_draw: list[list[Difference]], tolerance: float, exceptional: Sequence[bool]) -> EquivalenceReport:
    """Sum up the differences of all draws; the reason is the largest of those that are a problem."""
    every = [(number, difference) for number, draw in enumerate(by_draw) for difference in draw]
    failed = [(number, difference) for number, difference in every if difference.problem]
    worst_draw, worst = max(failed or every, key=lambda found: found[1].relative, default=(None, None))

    found = [difference for _, difference in every]
    informative = {difference.output for difference in found if difference.informative}
    return EquivalenceReport(
        equivalent=not failed,
        reason=worst.problem if worst else "",
        max_absolute_error=max((difference.absolute for difference in found), default=0.0),
        max_relative_error=max((difference.relative for difference in found), default=0.0),
        tolerance=tolerance,
        draws=len(by_draw) - sum(exceptional),
        non_vacuous_draws=sum(
            any(difference.informative for difference in draw)
            for draw, is_exceptional in zip(by_draw, exceptional, strict=True)
            if not is_exceptional
        ),
        worst_output=worst.output if worst else None,
        vacuous_outputs=tuple(sorted({difference.output for difference in found} - informative)),
        worst_draw=worst_draw,
        exceptional_draws=sum(exceptional),
    )
