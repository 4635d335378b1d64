"""The latencies of what several methods find on a graph, measured against each other and against the original.

    figures, outcomes = latencies(Source.of(model), contenders, sheet, gate, folder, on_progress)
    figures["deployed"]["original_over_greedy"]          {"value": 1.13, "ci95": [1.12, 1.14]}

What is timed is what a user gets: each result is exported, checked against the original and timed in fresh sessions
that take turns. The folder keeps what was found, so that a run that was killed does not search again.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from experiment.comparison import Contender, Outcome, compete, contest_of, time_all

from rlflow.method import OnProgress
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.source import Source
from rlflow.runtime.session import SETTINGS, Setting
from studies.figures import MeasuredRatio


class Sheet(NamedTuple):
    """The names under which figures are published.

    ratios: by name, the model above and the one below; medians: by name, the model whose median in ms it is. The
    original's two timings, whose ratio is the noise floor, are `ORIGINAL` and `again(ORIGINAL)`.
    """

    ratios: Mapping[str, tuple[str, str]]
    medians: Mapping[str, str]


def latencies(
    source: Source,
    contenders: Mapping[str, Contender],
    sheet: Sheet,
    gate: GateConfig,
    folder: Path,
    on_progress: OnProgress,
) -> tuple[dict[Setting, dict[str, Any]], dict[str, Outcome]]:
    """Return the figures by setting of ONNX Runtime, and the outcome of each method.

    Figures are those of the sheet, each ratio of what was measured in the same round.
    """
    folder.mkdir(exist_ok=True)
    contest = contest_of(source, folder, gate)
    outcomes = {name: compete(contender, contest, folder, on_progress) for name, contender in contenders.items()}
    before = os.getloadavg()[0]
    timing = time_all(contest, outcomes, on_progress)
    context = {"rounds": gate.rounds, "runs_per_round": gate.runs_per_round, "load": [before, os.getloadavg()[0]]}
    return {setting: _figures(timing.times_ms[setting], sheet) | context for setting in SETTINGS}, outcomes


def _figures(times_ms: Mapping[str, np.ndarray], sheet: Sheet) -> dict[str, Any]:
    ratios = {
        name: MeasuredRatio.of(times_ms[one], times_ms[other]).to_json() for name, (one, other) in sheet.ratios.items()
    }
    return ratios | {name: float(np.median(times_ms[model])) for name, model in sheet.medians.items()}
