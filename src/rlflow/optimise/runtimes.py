"""Original and result in several settings: are they right there, how fast is each, and where is it fastest?

    rows = in_settings(original, candidate, ("deployed", "openvino"), config, reference, deadline)
    fastest(rows).setting

The first setting is the one that was optimised for. In the others models are compared and timed as in it, all of them
in the same rounds, so that settings compare as well.

Invariant: a setting is chosen only if the original, too, computes there what it computes as written, within rounding or
within what the user accepts.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from rlflow.equivalence.compare import compare
from rlflow.equivalence.drawing import Reference
from rlflow.equivalence.reference import run_again
from rlflow.equivalence.report import EquivalenceReport
from rlflow.errors import RLFlowError
from rlflow.optimise.clock import Deadline
from rlflow.optimise.gate import GateConfig, limits_until
from rlflow.optimise.report import InSetting, LatencyChange
from rlflow.optimise.timing import CANDIDATE, ORIGINAL, latency_change
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.isolation import call_isolated
from rlflow.runtime.runtimes import YARDSTICK, open_model
from rlflow.runtime.session import structure_of
from rlflow.runtime.timing.latency import Round, alternating, session_opener

_LOGGER = logging.getLogger(__name__)

_ROUNDS = 8
"""Rounds of all settings together: a table is read for differences that are clear."""
NO_TIME = "the budget was over"


def in_settings(
    original: Path,
    candidate: Path,
    settings: Sequence[str],
    config: GateConfig,
    reference: Reference,
    deadline: Deadline,
) -> tuple[InSetting, ...]:
    """Compare and time both models in each setting; of one in which they do not run, a row says why.

    There are no rows where a single round would take too long. `candidate` is the original where there is no other.
    `reference` is what the original computes as written.
    """
    reports = {setting: _report(setting, original, candidate, config, reference, deadline) for setting in settings}
    running = [setting for setting, report in reports.items() if isinstance(report, EquivalenceReport)]
    if deadline.is_over or not running:
        return ()
    rounds = _rounds(original, candidate, running, config, deadline)

    def change(before: tuple[str, str], after: tuple[str, str], where: Sequence[str]) -> LatencyChange:
        return latency_change([_beside(each, before, after, where) for each in rounds], config.belief)

    rows, first = [], running[0]
    for setting, report in reports.items():
        if not isinstance(report, EquivalenceReport):
            rows.append(InSetting(setting, left_because=report))
            continue
        own = report.by_setting.get(setting, report)
        rewriting = change(ORIGINAL, CANDIDATE, (setting, setting))
        best = CANDIDATE if report.equivalent and rewriting.verdict.decision == "faster" else ORIGINAL
        rows.append(
            InSetting(
                setting=setting,
                error_before=report.own_error,
                error_after=own.max_relative_error,
                is_right=report.own_error <= own.tolerance,
                is_equivalent=report.equivalent,
                rewriting=rewriting,
                best=change(ORIGINAL, best, (first, setting)),
            )
        )
    return tuple(rows)


def fastest(rows: Sequence[InSetting]) -> InSetting:
    """Return the first row, or that of a setting in which the original's work takes less time than in it."""
    first, *others = rows
    better = [row for row in others if row.is_right and row.best and row.best.verdict.decision == "faster"]
    return max((first, *better), key=lambda row: row.best.verdict.ratio if row.best else 0.0)


def _report(
    setting: str, original: Path, candidate: Path, config: GateConfig, reference: Reference, deadline: Deadline
) -> EquivalenceReport | str:
    """The comparison in a setting, in another process; the reason why there is none."""
    if deadline.is_over:
        return NO_TIME
    own = replace(config, settings=(YARDSTICK, setting))
    try:
        return call_isolated(limits_until(config, deadline), _compared_in, setting, original, candidate, own, reference)
    except RLFlowError as error:
        _LOGGER.warning("nothing is known of %s: %s", setting, error)
        return str(error)


def _compared_in(
    setting: str, original: Path, candidate: Path, config: GateConfig, reference: Reference
) -> EquivalenceReport:
    as_written = replace(reference, others={}, accepted=config.accepted)
    known = run_again(open_model(original, setting, config.threads), setting, as_written)
    return compare(original, candidate, threads=config.threads, dimensions=config.dimensions, reference=known)


def _rounds(
    original: Path, candidate: Path, settings: Sequence[str], config: GateConfig, deadline: Deadline
) -> list[Round]:
    inputs = draw_inputs(structure_of(original), np.random.default_rng(config.seed), config.dimensions)
    openers = {
        _named(name, setting): session_opener(file, setting, config.threads, inputs)
        for setting in settings
        for file, twice in ((original, ORIGINAL), (candidate, CANDIDATE))
        for name in twice
    }
    endless = alternating(
        openers,
        np.random.default_rng(config.seed),
        runs_per_round=config.runs_per_round,
        threads=config.threads,
        left_s=lambda: deadline.left_s,
    )
    return list(islice(endless, min(_ROUNDS, config.rounds)))


def _beside(found: Round, before: tuple[str, str], after: tuple[str, str], where: Sequence[str]) -> Round:
    """The part of a round on two models, each in its setting, as if they were the original and the candidate."""
    pairs = zip((*ORIGINAL, *CANDIDATE), (*before, *after), (where[0],) * 2 + (where[1],) * 2, strict=True)
    return Round({name: found.times_ms[_named(model, setting)] for name, model, setting in pairs}, found.retaken)


def _named(model: str, setting: str) -> str:
    return f"{model}, {setting}"
