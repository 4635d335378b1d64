"""The findings of an experiment, in five lines, from its stored figures and nothing else.

    for line in findings(Path("data/results")): ...
    # Rules: 635 are verified; of 72 false ones none was accepted.
    # Dream: V tells what a match saves with an R² of 0.98 on bert (its rule's mean: 0.81).

The invariant: a line names the baseline of each figure, no difference within noise is told without that word, and
whose model is delivered is told beside its speed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from experiment.comparison import ORIGINAL
from experiment.formatting import with_interval
from experiment.results import read_results
from experiment.stage_summaries import gaps
from rlflow.runtime.timing.statistics import Estimate, beyond_noise

_LEARNED = ("rlflow", "rlflow_alone", "shipped_policy")
_DELIVERED = {"optimised": "delivered", "original": "delivered: the original"}
Graphs = Mapping[str, Mapping[str, Any]]


def findings(results: Path) -> list[str]:
    """The five lines on the experiment whose results lie in that folder. Raises `InputError` if some are missing."""

    def read(stage: str) -> Any:
        return read_results(results / stage / "metrics.json")

    evaluation = read("evaluate")
    return [
        _rules(read("generate_rules")),
        _dream(read("fit_world_model")),
        _policy(read("train_controller"), read("temperature_sweep")),
        f"Cost: the agent saves {_each(evaluation, _saving)}.",
        f"Time: what it leaves runs, as deployed, {_each(evaluation, _speed)}.",
    ]


def _rules(metrics: Mapping[str, Any]) -> str:
    false = metrics["unsound_rules_accepted"]
    accepted = f"{false['value']:.0f} were" if false["value"] else "none was"
    return f"Rules: {metrics['library']['rules']} are verified; of {false['cases']} false ones {accepted} accepted."


def _dream(metrics: Graphs) -> str:
    """Tell how far the world model can be trusted, by what its formulation measures."""
    if all("saving_r2" in found for found in metrics.values()):
        return f"Dream: V tells what a match saves with an R² of {_each(metrics, _r2)}."
    return f"Dream: after the most imagined steps, its error is {_each(metrics, _longest_error)}."


def _r2(found: Mapping[str, Any]) -> str:
    r2 = found["saving_r2"]
    return f"{r2['value']:.2f} (its rule's mean: {r2['baseline']:.2f})"


def _longest_error(found: Mapping[str, Any]) -> str:
    error = max(found["open_loop"], key=lambda row: row["horizon"])["error"]
    return f"{error['value']:.2g} ({error['baseline_name']}: {error['baseline']:.2g})"


def _policy(training: Graphs, sweep: Graphs) -> str:
    widest = max(gaps(point for found in sweep.values() for point in found["points"]))
    trust = f"medians in dream and reality differ by {widest:.0f} % at most"
    return f"Policy: alone it saves {_each(training, _alone)}; {trust}."


def _alone(found: Mapping[str, Any]) -> str:
    score = found["real_score_percent"]
    return f"{score['value']:.2f} % (a {score['baseline_name']} one: {score['baseline']:.2f} %)"


def _saving(methods: Graphs) -> str:
    """The saving of the policy on one graph, beside that of greedy search and the best method that learns nothing."""
    percents = {name: row["improvement_percent"] for name, row in methods.items()}
    searches = [name for name in percents if name not in (ORIGINAL, *_LEARNED)]
    best = max(searches, key=lambda name: percents[name], default=ORIGINAL)
    compared = [name for name in dict.fromkeys(("greedy", best)) if name in percents]
    return f"{percents['rlflow']:.2f} % ({', '.join(f'{name}: {percents[name]:.2f} %' for name in compared)})"


def _speed(methods: Graphs) -> str:
    row = methods["rlflow"]
    ratio = Estimate(row["latency_ratio_deployed"], *row["latency_ratio_deployed_ci95"])
    told = f"{with_interval(ratio.value, ratio.ci95)} times as fast"
    noise = [] if beyond_noise(ratio) else ["noise"]
    return f"{told} ({'; '.join([*noise, _DELIVERED[row['delivered']]])})"


def _each(metrics: Mapping[str, Any], tell: Callable[[Any], str]) -> str:
    """Tell of each graph, with its name."""
    return " and ".join(f"{tell(found)} on {graph}" for graph, found in metrics.items())
