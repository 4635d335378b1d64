"""The latencies of what several methods find on graphs, measured against each other and against the original.

    methods = contenders({"greedy": option_of("search", "greedy")}, cost_model, {"greedy": Budget()})
    for name, figures, outcomes in latencies(graphs, lambda _: methods, gate, folder):
        figures["deployed"]["original_over_greedy"]          {"value": 1.13, "ci95": [1.12, 1.14]}

What is timed is what a user gets: each result is exported, checked against the original and timed in fresh sessions
that take turns. The folder keeps what was found, so that a run that was killed does not search again.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from experiment.comparison import ORIGINAL, Contender, Outcome, again, compete, contest_of, time_all
from tracking.factories import model_of

from rlflow.cli.progress import progress_bar
from rlflow.cost.base import CostModel
from rlflow.method import Budget
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.methods import METHODS
from rlflow.optimise.source import Source
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.session import SETTINGS, Setting
from studies.figures import MeasuredRatio

Figures = dict[Setting, dict[str, Any]]


def contenders(
    searches: Mapping[str, Any], cost_model: CostModel, budgets: Mapping[str, Budget]
) -> dict[str, Contender]:
    """Methods by sections of conf/search, with all rules and the budget of their name."""
    rules = library.load()
    rewriter = Rewriter(rules.rules)
    return {
        name: Contender(METHODS.get(search["method"])(rules, rewriter, cost_model, **search["options"]), budgets[name])
        for name, search in searches.items()
    }


def latencies(
    graphs: Mapping[str, Any], methods_of: Callable[[str], Mapping[str, Contender]], gate: GateConfig, folder: Path
) -> Iterator[tuple[str, Figures, dict[str, Outcome]]]:
    """Yield each graph's name, the figures by setting of ONNX Runtime, and the outcome of each method.

    graphs: sections of conf/graph by name. Every ratio of two models is one of what was measured in the same round, and
    the original's to itself is the noise floor.
    """
    for name, graph in graphs.items():
        place = folder / name
        place.mkdir(exist_ok=True)
        with progress_bar(name) as on_progress:
            contest = contest_of(Source.of(model_of(graph)), place, gate)
            outcomes = {
                method: compete(contender, contest, place, on_progress)
                for method, contender in methods_of(name).items()
            }
            before = os.getloadavg()[0]
            timing = time_all(contest, outcomes, on_progress)
        context = {"rounds": gate.rounds, "runs_per_round": gate.runs_per_round, "load": [before, os.getloadavg()[0]]}
        yield name, {s: _figures(timing.times_ms[s], [ORIGINAL, *outcomes]) | context for s in SETTINGS}, outcomes


def _figures(times_ms: Mapping[str, np.ndarray], models: list[str]) -> dict[str, Any]:
    pairs = {f"{one}_over_{other}": (one, other) for one, other in combinations(models, 2)}
    pairs = {f"{ORIGINAL}_over_{ORIGINAL}": (ORIGINAL, again(ORIGINAL))} | pairs
    ratios = {name: MeasuredRatio.of(times_ms[one], times_ms[other]).to_json() for name, (one, other) in pairs.items()}
    return ratios | {f"{model}_ms": float(np.median(times_ms[model])) for model in models}
