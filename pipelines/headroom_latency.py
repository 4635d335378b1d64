"""Time the graphs that greedy search and equality saturation find against each other and against the original.

    python pipelines/headroom_latency.py

The machine should be quiet: other work widens the intervals, and the control, the original against itself, shows it.
The figures go to data/results/headroom/latency.json. What was searched is kept until all graphs are timed.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hydra
import numpy as np
from omegaconf import DictConfig, OmegaConf

from rlflow.cli.progress import progress_bar
from rlflow.evaluation.comparison import ORIGINAL, Contender, again, compete, contest_of, time_all
from rlflow.evaluation.results import write_results
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.methods import METHODS
from rlflow.optimise.source import Source
from rlflow.optimiser import Budget, OnProgress
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.session import SETTINGS
from rlflow.runtime.timing.statistics import ratio
from rlflow.tracking.factories import cost_model_of, model_of
from rlflow.tracking.run import numbers
from rlflow.tracking.study import OptionOf, checkpoint, options_of, study_run

RESULTS = Path("data/results/headroom/latency.json")
GREEDY, SATURATION = "greedy", "equality_saturation"


@hydra.main(version_base="1.3", config_path="../conf", config_name="headroom")
def headroom_latency(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    option_of = options_of("headroom")
    gate = GateConfig(**settings["latency"]["gate"], seed=settings["seed"])
    contenders = _contenders(settings["latency"], option_of)

    results: dict[str, Any] = {}
    with (
        checkpoint("headroom_latency", settings) as folder,
        study_run("headroom_latency", settings["latency"]) as run,
    ):
        for name in settings["latency"]["graphs"]:
            with progress_bar(name) as on_progress:
                results[name] = _timed(option_of("graph", name), contenders, gate, folder / name, on_progress)
            run.log(0, numbers({name: results[name]}))
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        write_results(RESULTS, results)
        run.artifact(RESULTS)


def _contenders(settings: Any, option_of: OptionOf) -> dict[str, Contender]:
    """The two searches, with all rules."""
    rules, cost_model = library.load(), cost_model_of(option_of("cost", settings["cost"]))
    rewriter = Rewriter(rules.rules)
    contenders = {}
    for name in (GREEDY, SATURATION):
        search = option_of("search", name)
        method = METHODS.get(search["method"])(rules, rewriter, cost_model, **search["options"])
        contenders[name] = Contender(method, Budget(settings["time_s"], search["expansions"]))
    return contenders


def _timed(
    graph: Any, contenders: dict[str, Contender], gate: GateConfig, folder: Path, on_progress: OnProgress
) -> dict[str, Any]:
    """The latencies of one graph by setting; the folder keeps its models and what was found."""
    folder.mkdir(exist_ok=True)
    contest = contest_of(Source.of(model_of(graph)), folder, gate)
    outcomes = {name: compete(contender, contest, folder, on_progress) for name, contender in contenders.items()}
    before = os.getloadavg()[0]
    timing = time_all(contest, outcomes, on_progress)
    context = {"rounds": gate.rounds, "runs_per_round": gate.runs_per_round, "load": [before, os.getloadavg()[0]]}
    return {setting: _figures(timing.times_ms[setting]) | context for setting in SETTINGS}


def _figures(times_ms: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Medians, and ratios of what was measured in the same round; the original's two timings are the control."""
    pairs = {
        "original_over_original": (ORIGINAL, again(ORIGINAL)),
        "original_over_greedy": (ORIGINAL, GREEDY),
        "original_over_equality_saturation": (ORIGINAL, SATURATION),
        "greedy_over_equality_saturation": (GREEDY, SATURATION),
    }
    ratios = {name: ratio(times_ms[one], times_ms[other]) for name, (one, other) in pairs.items()}
    return {name: {"value": found.value, "ci95": found.ci95} for name, found in ratios.items()} | {
        "original_ms": float(np.median(times_ms[ORIGINAL])),
        "greedy_ms": float(np.median(times_ms[GREEDY])),
        "equality_saturation_ms": float(np.median(times_ms[SATURATION])),
    }


if __name__ == "__main__":
    headroom_latency()
