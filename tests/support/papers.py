"""Results documents of all parts of the papers' evaluations, small and made up."""

from pathlib import Path
from typing import Any

from experiment.results import read_results
from studies.paper.walks import COSTS

_COURSES = {
    name: [[1.0, 2.0, 4.0], [2.0, 3.0, 5.0]]
    for name in (
        "encoder/saving",
        "memory/births",
        "memory/latent",
        "return_percent",
        "real_score_percent",
        "trial_percent",
    )
}

_X_RLFLOW = ("x-rlflow", "x-rlflow alone", "x-rlflow untrained")


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
        "peak_memory_saved_percent",
        "launches_saved_percent",
        "optimisation_s",
        "training_s",
        "training_evaluations",
    )
    return variant(seeds, improvement_percent=improvement_percent, **dict.fromkeys(names, 10.0), **timed())


def timed(ratio: float = 1.1, low: float = 1.05, high: float = 1.15) -> dict[str, float]:
    """A ratio of latencies with its interval, in both settings."""
    ends = (("", ratio), ("_low", low), ("_high", high))
    return {f"latency_ratio_{setting}{end}": value for setting in ("as_written", "deployed") for end, value in ends}


def agents(rlflow: float = 5.5) -> dict[str, Any]:
    """BERT by searches, by the agent that dreams, alone as well, and by the model-free one."""
    return document(
        bert={
            "original": method(0.0),
            "greedy": method(4.0),
            "taso": method(5.0),
            "shipped_policy": method(6.0),
            "rlflow": method(rlflow),
            "rlflow_alone": method(3.0),
            "model-free": method(2.0),
            "graph_level": method(1.0),
        }
    )


def reward_study(every_step: float = 1.3) -> dict[str, Any]:
    """BERT by the estimated reward, 1.2 times as fast, by a measured one, and by one that finds the same."""
    return {
        "bert": {
            "estimated": _by_reward(1.2, training_s=10.0, measurements=0, noise_share=None),
            "every_step": _by_reward(every_step, training_s=100.0, measurements=5, noise_share=0.8),
            "at_the_end": _by_reward(1.2, training_s=100.0, measurements=5, noise_share=0.8),
        }
    }


def _by_reward(ratio: float, training_s: float, measurements: int, noise_share: float | None) -> dict[str, Any]:
    """What agents found by one reward, each half-width a tenth of its figure; that of speed-ups .02."""
    speed_up = {"value": ratio, "ci95": [ratio - 0.02, ratio + 0.02]}
    timed = {"ratio": speed_up, "control": {"value": 1.0, "ci95": [0.99, 1.01]}}
    seconds = {"value": training_s, "ci95": [0.9 * training_s, 1.1 * training_s], "cases": 2}
    row = {
        "curve": [1.0],
        "interactions": 100,
        "training_s": training_s,
        "measurements": measurements,
        "measuring_s": 0.0,
        "rewards_measured": measurements,
        "rewards_noise": 0,
        "noise_share": noise_share,
        "estimated_percent": 3.0,
        "latency": {"as_written": timed, "deployed": timed},
    }
    return {
        "seeds": [{"seed": seed} | row for seed in range(2)],
        "latency_ratio_as_written": speed_up | {"cases": 2},
        "latency_ratio_deployed": speed_up | {"cases": 2},
        "training_s": seconds,
        "measuring_s": seconds,
        "measurements": {"value": measurements, "ci95": [measurements, measurements], "cases": 2},
        "noise_share": None if noise_share is None else {"value": noise_share, "ci95": [0.7, 0.9], "cases": 2},
    }


def results(repository: Path) -> dict[str, Any]:
    """Every part, and the published documents of the other studies."""
    correlations = {f"correlation_runtime_ms_{cost}": 0.5 for cost in COSTS[1:]}
    walk = {"layers": 12, "unique_layers": 3, "rules_that_match": 5, "matches": 80, "graphs": 20, "step_ms": 2.0}
    rewards = {name: method(5.0) for name in ("R2", "R3", "R4", "R5", "alpha 1.0")}
    framework = timed() | {f"latency_{setting}_ms": 3.0 for setting in ("as_written", "deployed")}
    seven = {name: method(value) for name, value in (("greedy", 4.0), ("taso", 5.0), ("equality_saturation", 6.0))}
    shapes = variant(transferred_percent=4.75, special_percent=5.0, greedy_percent=4.0)
    stages = ("cost_accuracy", "fit_world_model", "headroom", "sample_efficiency", "temperature_sweep")
    published = {name: read_results(repository / f"data/results/{name}/metrics.json") for name in stages}
    return published | {
        "bench": read_results(repository / "data/results/bench.json"),
        "graphs": document(bert={"walk": variant(**walk, **correlations)}),
        "agents": agents(),
        "unseen": document(bert={"4": variant(improvement_percent=3.0, greedy_percent=4.0)}),
        "frameworks": document(bert={name: variant(1, **framework) for name in ("original", "pytorch")}),
        "temperatures": document(bert={"tau 1": variant(dream_percent=1.0, real_percent=1.0)}),
        "reward_study": reward_study(),
        "rewards": document(bert=rewards | {"R1": method(5.5)}),
        "candidates": document(bert=seven | dict.fromkeys(_X_RLFLOW, method(5.5))),
        "shapes": document(bert={"bert_sequence_64": shapes}),
    }
