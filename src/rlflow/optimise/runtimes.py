"""Original and result in several settings: are they right there, how fast is each, and where is it fastest?

    beside = Beside(original, candidate, "deployed", is_better, config, reference, deadline)
    fastest(beside.rows(report, ["openvino"])).setting

The first setting is the one that was optimised for, in which it is known what is delivered. In the others models are
compared and timed as in it, all of them in the same rounds, so that settings compare as well.

Invariant: a setting is chosen only if the original, too, computes there what it computes as written, within rounding or
within what the user accepts; and the result only where it was found equal and faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from rlflow.optimise.reported.latency import LatencyChange
from rlflow.optimise.reported.settings import InSetting
from rlflow.optimise.timing import CANDIDATE, ORIGINAL, latency_change
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.isolation import call_isolated
from rlflow.runtime.runtimes import YARDSTICK, open_model
from rlflow.runtime.session import structure_of
from rlflow.runtime.timing.latency import Round, alternating, session_opener

_ROUNDS = 8
"""Rounds of all settings together: a table is read for differences that are clear."""
NO_TIME = "the budget was over"
_Where = tuple[tuple[str, str], str]
"""The two names of a model, and a setting."""


@dataclass(frozen=True)
class Beside:
    """An original and what was made of it, if anything was, to be run in other settings beside the `first`.

    `is_better` says that the candidate is delivered for that; `reference` is what the original computes as written.
    """

    original: Path
    candidate: Path | None
    first: str
    is_better: bool
    config: GateConfig
    reference: Reference
    deadline: Deadline

    def rows(self, known: EquivalenceReport, others: Sequence[str]) -> tuple[InSetting, ...]:
        """Compare and time both in each setting; where they do not run, or there is no time, a row says so.

        `known` is the report on both in the first setting, or on the original alone.
        """
        reports: dict[str, EquivalenceReport | str] = {self.first: known}
        reports |= {setting: self._report(setting) for setting in others}
        if self.deadline.is_over:
            reports = dict.fromkeys(reports, NO_TIME)
        running = [setting for setting, report in reports.items() if not isinstance(report, str)]
        timed = self._timed(running) if running else []
        return tuple(
            InSetting(setting, left_because=report) if isinstance(report, str) else self._row(setting, report, timed)
            for setting, report in reports.items()
        )

    def _report(self, setting: str) -> EquivalenceReport | str:
        """The comparison in a setting, in another process; the reason why there is none."""
        if self.deadline.is_over:
            return NO_TIME
        limits, config = limits_until(self.config, self.deadline), replace(self.config, settings=(YARDSTICK, setting))
        candidate = self.candidate or self.original
        try:
            return call_isolated(limits, _compared_in, setting, self.original, candidate, config, self.reference)
        except RLFlowError as error:
            return str(error)

    def _timed(self, settings: Sequence[str]) -> list[Round]:
        """Rounds of both models in all settings."""
        config = self.config
        inputs = draw_inputs(structure_of(self.original), np.random.default_rng(config.seed), config.dimensions)
        models = {ORIGINAL: self.original} | ({} if self.candidate is None else {CANDIDATE: self.candidate})
        openers = {
            _named(name, setting): session_opener(file, setting, config.threads, inputs)
            for setting in settings
            for twice, file in models.items()
            for name in twice
        }
        endless = alternating(
            openers,
            np.random.default_rng(config.seed),
            runs_per_round=config.runs_per_round,
            threads=config.threads,
            left_s=lambda: self.deadline.left_s,
        )
        return list(islice(endless, min(_ROUNDS, config.rounds)))

    def _row(self, setting: str, report: EquivalenceReport, timed: Sequence[Round]) -> InSetting:
        own, rewriting, is_better = report.by_setting.get(setting, report), None, self.is_better
        if self.candidate is not None:
            rewriting = self._change(timed, (ORIGINAL, setting), (CANDIDATE, setting))
            if setting != self.first:
                is_better = report.equivalent and rewriting.verdict.decision == "faster"
        return InSetting(
            setting=setting,
            error_before=report.own_error,
            error_after=report.own_error if self.candidate is None else own.max_relative_error,
            is_right=report.own_error <= own.tolerance,
            is_equivalent=report.equivalent,
            is_better=is_better,
            rewriting=rewriting,
            best=self._change(timed, (_better(self.is_better), self.first), (_better(is_better), setting)),
        )

    def _change(self, timed: Sequence[Round], before: _Where, after: _Where) -> LatencyChange:
        """The change from one model in its setting to another in its own."""
        rounds = [Round(_beside(each.times_ms, before, after), each.retaken) for each in timed]
        return latency_change(rounds, self.config.belief, self.config.proof)


def fastest(rows: Sequence[InSetting]) -> InSetting:
    """Return the row of the setting that is fastest by far enough to leave the first, or that of the first."""
    first, *others = rows
    better = [(row.best.verdict, row) for row in others if row.is_right and row.best is not None]
    faster = {verdict.ratio: row for verdict, row in better if verdict.decision == "faster"}
    return faster[max(faster)] if faster else first


def _compared_in(
    setting: str, original: Path, candidate: Path, config: GateConfig, reference: Reference
) -> EquivalenceReport:
    as_written = replace(reference, others={}, accepted=config.accepted)
    known = run_again(open_model(original, setting, config.threads), setting, as_written)
    return compare(original, candidate, threads=config.threads, dimensions=config.dimensions, reference=known)


def _beside(times_ms: Mapping[str, float], before: _Where, after: _Where) -> dict[str, float]:
    """The times of two models, each in its setting, by the names of original and candidate."""
    pairs = ((ORIGINAL, before), (CANDIDATE, after))
    return {
        new: times_ms[_named(old, setting)]
        for names, (olds, setting) in pairs
        for new, old in zip(names, olds, strict=True)
    }


def _better(is_candidate: bool) -> tuple[str, str]:
    return CANDIDATE if is_candidate else ORIGINAL


def _named(model: str, setting: str) -> str:
    return f"{model}, {setting}"
