"""The comparison of a rewritten model with its original, by running both on drawn inputs.

The yardstick is what the original computes as written. Against it counts what the other model computes in each setting:
as written, and as deployed or in another runtime, which fuses nodes, and a fusion may be wrong or lossy.

    compare(original, optimised)                        in both settings
    compare(original, optimised, setting="deployed")    in that one alone, in which the yardstick is taken, too

An error is the largest difference in an output over the largest absolute value expected there. It decides:

    error <= tolerance                          equivalent: rounding explains it (`rlflow.equivalence.tolerance`)
    error <= the original's own, as deployed    equivalent: fusions of the runtime change the original as much
    error <= INCONCLUSIVE_FACTOR * tolerance    inconclusive: rounding in a badly conditioned model may explain it, so
                                                both models are run in float64 (`rlflow.equivalence.float64_check`)
    otherwise                                   not equivalent

If there is no float64 reference, as for a model of float64, an inconclusive error means not equivalent. Where a setting
computes in a coarser type, its user says which error to accept, and that alone decides. The report counts its evidence:
a draw whose outputs could not have shown a fault is not informative.

What the original computes is a `Reference`. One that is known saves opening and running the original again, which for
large models is half of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from rlflow.equivalence.difference import Difference, differences, differences_beyond
from rlflow.equivalence.drawing import Inputs, Outputs, Reference
from rlflow.equivalence.float64_check import FloatRuns, check_in_float64
from rlflow.equivalence.interface import interface_problem
from rlflow.equivalence.reference import outputs_of, reference_of
from rlflow.equivalence.report import EquivalenceReport, not_equivalent
from rlflow.equivalence.tolerance import DOUBLE_EPSILON, coarsest_epsilon, tolerance_of
from rlflow.errors import RLFlowError
from rlflow.runtime.runtimes import OpenModel, open_model, said
from rlflow.runtime.session import SETTINGS, Setting, structure_of


def compare(
    original: ModelProto | Path,
    optimised: ModelProto | Path,
    *,
    draws: int = 3,
    seed: int = 0,
    threads: int = 1,
    setting: Setting | None = None,
    dimensions: Mapping[str, int] | None = None,
    inputs: Sequence[Mapping[str, np.ndarray]] | None = None,
    reference: Reference | None = None,
    exceptional: bool = False,
    to_run: Inputs | None = None,
) -> EquivalenceReport:
    """Compare interfaces, then outputs on `draws` drawn inputs, or on `inputs` if these are given.

    With a `reference`, which `reference_of` returned, its inputs and settings are taken and the original is not run
    again.

    The optimised model may be for the sizes `dimensions` alone. Dynamic dimensions without a value in `dimensions` get
    small sizes, different ones if the original runs with them, so that swapped axes show. If `exceptional`, models must
    agree on NaN and infinities, too, in the first setting. Both models run in both settings, or in `setting`, on
    `threads` threads.

    In its last setting, the optimised model runs on the inputs `to_run`, too, if these are given; nobody looks at the
    outputs. An optimised model that does not load or run is not equivalent. Raises `RLFlowError` for an original that
    does not, and `InputError` when `draws` is below 1 or `seed` below 0.
    """
    structure = structure_of(original)
    if problem := interface_problem(structure, structure_of(optimised), dimensions):
        return not_equivalent(problem, structure, draws)

    if reference is None:
        settings = SETTINGS if setting is None else (setting,)
        reference = reference_of(
            original,
            settings,
            draws=draws,
            seed=seed,
            threads=threads,
            dimensions=dimensions,
            inputs=inputs,
            exceptional=exceptional,
        )
    reports: dict[str, EquivalenceReport] = {}
    for each in reference.settings:
        known = reference if each == reference.setting else reference.ordinary
        try:
            further = [] if to_run is None or each != reference.settings[-1] else [to_run]
            actual = outputs_of(open_model(optimised, each, threads), [*known.inputs, *further])[: len(known.inputs)]
        except RLFlowError as error:
            reports[each] = not_equivalent(str(error), structure, len(reference.inputs), is_run=False)
        else:
            reports[each] = _verdict(original, optimised, known, each, actual)
        if not reports[each].equivalent:
            break
    return _of_all(reports, reference, tolerance_of(structure))


def compare_with_itself(original: ModelProto | Path, session: OpenModel, reference: Reference) -> EquivalenceReport:
    """Run a model again, in a session of the first setting of `reference`: what changes from run to run shows."""
    return _verdict(original, original, reference, reference.setting, outputs_of(session, reference.inputs))


def with_own_error(report: EquivalenceReport, reference: Reference) -> EquivalenceReport:
    """Add to a report on the original how far it is from itself in another setting."""
    return replace(report, **_own(reference, report.tolerance))


def _of_all(reports: Mapping[str, EquivalenceReport], reference: Reference, tolerance: float) -> EquivalenceReport:
    """Sum up the reports of all settings: the figures are those of the worst, which is named if it is a problem."""
    setting, worst = max(reports.items(), key=lambda each: (not each[1].equivalent, each[1].max_relative_error))
    is_only_there = not worst.equivalent and len(reports) > 1  # as written they agree
    reason = f"{worst.reason}, {said(setting)}" if is_only_there else worst.reason
    return replace(
        worst,
        reason=reason,
        max_absolute_error=max(each.max_absolute_error for each in reports.values()),
        worst_setting=setting,
        by_setting=dict(reports),
        **_own(reference, tolerance),
    )


def _own(reference: Reference, tolerance: float) -> dict[str, Any]:
    """The largest relative error of the original in a setting other than the first, and which setting that is."""
    known, errors = reference.ordinary, dict[str, float]()
    for setting, outputs in known.others.items():
        pairs = zip(known.outputs, outputs, strict=True)
        errors[setting] = max((found.relative for pair in pairs for found in differences(*pair, tolerance)), default=0)
    if not errors:
        return {}
    worst = max(errors, key=lambda setting: errors[setting])
    return {"own_error": float(errors[worst]), "own_setting": worst}


def _verdict(
    original: ModelProto | Path,
    optimised: ModelProto | Path,
    reference: Reference,
    setting: str,
    actual: list[Outputs],
) -> EquivalenceReport:
    """Judge the outputs of the optimised model in a setting, in float64 if these alone do not decide."""
    structure, accepted = structure_of(original), reference.accepted.get(setting)
    tolerance = tolerance_of(structure) if accepted is None else accepted
    draws = zip(reference.in_setting(setting), reference.outputs, actual, strict=True)
    report = _report([differences_beyond(*draw, tolerance) for draw in draws], tolerance, reference.exceptional)
    if accepted is None and report.is_inconclusive and coarsest_epsilon(structure) > DOUBLE_EPSILON:
        runs = FloatRuns(reference.inputs, reference.outputs, actual)
        return _checked_in_float64(report, original, optimised, runs)
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
