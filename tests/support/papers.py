"""Results documents of all parts of the papers' evaluations, small and made up."""

from pathlib import Path
from typing import Any

from rlflow.evaluation.paper.walks import COSTS
from rlflow.evaluation.results import read_results

_COURSES = {
    name: [[1.0, 2.0, 4.0], [2.0, 3.0, 5.0]]
    for name in ("encoder/saving", "memory/births", "return_percent", "real_score_percent")
}


def variant(seeds: int = 2, **figures: float) -> dict[str, Any]:
    """Two seeds half a unit around each figure, or one."""
    spread = {1: [0.0], 2: [-0.5, 0.5]}[seeds]
    told = {
        name: {"value": value, "ci95": [value + spread[0], value + spread[-1]], "values": [value + s for s in spread]}
        for name, value in figures.items()
    }
    return {"seeds": list(range(seeds)), "figures": told, "curves": _COURSES, "counts": {"fuse": 3, "swap": 1}}


def document(**graphs: dict[str, Any]) -> dict[str, Any]:
    return graphs


def method(improvement_percent: float, seeds: int = 2) -> dict[str, Any]:
    names = (
        "deployed_percent",
        "bytes_saved_percent",
        "peak_memory_saved_percent",
        "optimisation_s",
        "training_s",
        "training_evaluations",
    )
    return variant(seeds, improvement_percent=improvement_percent, **dict.fromkeys(names, 10.0))


def agents(rlflow: float = 5.5) -> dict[str, Any]:
    """BERT by searches, by the agent that dreams, alone as well, and by the model-free one."""
    unseen = variant(improvement_percent=3.0, greedy_percent=4.0)
    return document(
        bert={
            "greedy": method(4.0, seeds=1),
            "taso": method(5.0, seeds=1),
            "guided_chains": method(6.0, seeds=1),
            "rlflow": method(rlflow),
            "dreamt": method(3.0),
            "model-free": method(2.0),
            "unseen 4": unseen,
        }
    )


def results(repository: Path) -> dict[str, Any]:
    """Every part, and the published documents of the other studies."""
    correlations = {f"correlation_runtime_ms_{cost}": 0.5 for cost in COSTS[1:]}
    walk = {"layers": 12, "unique_layers": 3, "rules_that_match": 5, "matches": 80, "graphs": 20, "step_ms": 2.0}
    rewards = {name: method(5.0) for name in ("R2", "R3", "R4", "R5", "alpha 1.0")}
    timed = {
        f"latency_ratio_{setting}{end}": ratio
        for setting in ("as_written", "deployed")
        for end, ratio in (("", 1.1), ("_low", 1.05), ("_high", 1.15))
    }
    framework = timed | {f"latency_{setting}_ms": 3.0 for setting in ("as_written", "deployed")}
    seven = {name: method(value) for name, value in (("greedy", 4.0), ("taso", 5.0), ("equality_saturation", 6.0))}
    shapes = variant(transferred_percent=4.75, special_percent=5.0, greedy_percent=4.0)
    stages = ("cost_accuracy", "fit_world_model", "headroom", "sample_efficiency", "temperature_sweep")
    published = {name: read_results(repository / f"data/results/{name}/metrics.json") for name in stages}
    return published | {
        "bench": read_results(repository / "data/results/bench.json"),
        "graphs": document(bert={"walk": variant(**walk, **correlations)}),
        "agents": agents(),
        "latency": document(bert={agent: variant(1, **timed) for agent in ("original", "rlflow")}),
        "frameworks": document(bert={name: variant(1, **framework) for name in ("original", "pytorch")}),
        "temperatures": document(bert={"tau 1": variant(dream_percent=1.0, real_percent=1.0)}),
        "rewards": document(bert=rewards | {"R1": method(5.5)}),
        "candidates": document(bert=seven | {"x-rlflow": method(5.5)}),
        "shapes": document(bert={"bert_sequence_64": shapes}),
    }
