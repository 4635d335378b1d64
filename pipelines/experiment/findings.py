"""The findings of an experiment, in five lines, from its stored figures and nothing else.

    for line in findings(Path("data/results")): ...
    # Rules: 635 are verified; of 72 false ones none was accepted.
    # Dream: V tells what a match saves with an R² of 0.98, more than its rule's mean (0.81), on bert.

The invariant: a line says how each figure stands to its baseline, by the digits that it shows; no difference within
noise is told without that word, and whose model is delivered is told beside its speed.
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
_MORE, _AS_MUCH, _LESS = "more than", "as much as", "less than"
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
        f"Cost: the agent saves {_each(evaluation, _saving)}.{_score(evaluation)}",
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
    return f"{r2['value']:.2f}, {_beside(r2['value'], r2['baseline'])} its rule's mean ({r2['baseline']:.2f}),"


def _longest_error(found: Mapping[str, Any]) -> str:
    error = max(found["open_loop"], key=lambda row: row["horizon"])["error"]
    beside = _beside(error["value"], error["baseline"])
    return f"{error['value']:.2f}, {beside} that of {error['baseline_name']} ({error['baseline']:.2f}),"


def _policy(training: Graphs, sweep: Graphs) -> str:
    widest = max(gaps(point for found in sweep.values() for point in found["points"]))
    trust = f"medians in dream and reality differ by {widest:.0f} % at most"
    return f"Policy: alone it saves {_each(training, _alone)}; {trust}."


def _alone(found: Mapping[str, Any]) -> str:
    score = found["real_score_percent"]
    beside = _beside(score["value"], score["baseline"])
    return f"{score['value']:.2f} %, {beside} a {score['baseline_name']} one ({score['baseline']:.2f} %),"


def _saving(methods: Graphs) -> str:
    """The saving of the agent on one graph, beside that of greedy search and the best method that learns nothing."""
    saved, best = methods["rlflow"]["improvement_percent"], _best_search(methods)
    percents = {name: methods[name]["improvement_percent"] for name in dict.fromkeys(("greedy", best))}
    told = ", ".join(f"{name}: {percent:.2f} %" for name, percent in percents.items())
    return f"{saved:.2f} %, {_beside(saved, percents[best])} the best search ({told}),"


def _score(evaluation: Graphs) -> str:
    """Say on how many graphs the agent wins, ties and loses against the best search, if there are several."""
    if len(evaluation) == 1:
        return ""
    found = [
        _beside(methods["rlflow"]["improvement_percent"], methods[_best_search(methods)]["improvement_percent"])
        for methods in evaluation.values()
    ]
    wins, ties, losses = (found.count(word) for word in (_MORE, _AS_MUCH, _LESS))
    return f" Of {len(found)} graphs it wins {wins}, ties {ties} and loses {losses}."


def _best_search(methods: Graphs) -> str:
    """The method that learns nothing and saves most; greedy search if others save no more."""
    searches = ["greedy", *(name for name in methods if name not in (ORIGINAL, *_LEARNED))]
    return max((name for name in searches if name in methods), key=lambda name: methods[name]["improvement_percent"])


def _beside(value: float, baseline: float) -> str:
    """Say how a figure stands to its baseline, by the two digits that are shown of both."""
    shown, beside = round(value, 2), round(baseline, 2)
    return _AS_MUCH if shown == beside else _MORE if shown > beside else _LESS


def _speed(methods: Graphs) -> str:
    row = methods["rlflow"]
    ratio = Estimate(row["latency_ratio_deployed"], *row["latency_ratio_deployed_ci95"])
    word = ("faster" if ratio.value > 1 else "slower") if beyond_noise(ratio) else "no difference beyond noise"
    return f"{with_interval(ratio.value, ratio.ci95)} times as fast ({word}; {_DELIVERED[row['delivered']]})"


def _each(metrics: Mapping[str, Any], tell: Callable[[Any], str]) -> str:
    """Tell of each graph, with its name."""
    return " and ".join(f"{tell(found)} on {graph}" for graph, found in metrics.items())
