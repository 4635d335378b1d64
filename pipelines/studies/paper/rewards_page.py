"""The sections on rewards: which of the computed ones is learned best by, and computed beside measured ones."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from studies.paper.told import (
    Results,
    Variant,
    best_variant,
    markdown_table,
    median_of,
    median_told,
    names_told,
    printed_or_empty,
    with_interval,
)


def rewards_section(results: Results, published: Mapping[str, Any]) -> str:
    (graph, variants), *_ = results["rewards"].items()
    figure = {name: one for name, one in variants.items() if name.startswith("R")}
    meaning = {"R1": "0.8 / 0.2", "R2": "runtime", "R3": "0.1 / 0.9", "R4": "0.5 / 0.5", "R5": "incremental"}
    rows = [
        [
            name,
            meaning[name],
            median_told(one, "improvement_percent"),
            _half_way(one),
            printed_or_empty(published["section_4_3"], name),
        ]
        for name, one in figure.items()
    ]
    grid = _by_alpha(variants)
    grid_rows = [[f"{alpha:.1f}", median_told(one, "improvement_percent")] for alpha, one in grid.items()]
    best = best_variant(figure, "improvement_percent")
    level = [name for name in figure if name != best and _overlap(figure[name], figure[best], "improvement_percent")]
    evaluations = median_of(figure[best], "training_evaluations")
    best_alpha = max(grid, key=lambda alpha: median_of(grid[alpha], "improvement_percent"))
    chosen = grid[published["best_alpha"]]
    meeting = "overlap" if _overlap(grid[best_alpha], chosen, "improvement_percent") else "are apart"
    verdict = (
        f"which is the paper's {published['best_alpha']}"
        if best_alpha == published["best_alpha"]
        else f"where the paper has {published['best_alpha']}; the intervals of both {meeting}"
    )
    head = ("reward", "what it is", "saved %", "updates to half of its best return", "paper: saved %")
    return f"""## RLFlow, Figure 5: what rewards the model-free agent learns by, on {graph}

{markdown_table(head, rows)}
{best} has the largest median of the five; its interval meets those of {names_told(level)}. The paper trains for 500
epochs on the whole BERT; here an agent has {evaluations:.0f} real rewrites, its trials included.

The grid of alpha, the weight of runtime, with beta = 1 - alpha that of memory accesses:

{markdown_table(("alpha", "saved %"), grid_rows)}
The largest median is at alpha = {best_alpha:.1f}, {verdict}.
"""


def _by_alpha(variants: Mapping[str, Variant]) -> dict[float, Variant]:
    """The variants of the grid; those of Figure 5 that are a point of it stand in for it."""
    grid = {0.8: variants["R1"], 0.1: variants["R3"], 0.5: variants["R4"]}
    grid |= {float(name[6:]): one for name, one in variants.items() if name.startswith("alpha ")}
    return dict(sorted(grid.items()))


def _overlap(one: Variant, other: Variant, name: str) -> bool:
    (low, high), (other_low, other_high) = one["figures"][name]["ci95"], other["figures"][name]["ci95"]
    return bool(low <= other_high and other_low <= high)


def _half_way(variant: Variant) -> str:
    """The updates after which the return was first half way from its first to its best; the median over seeds."""
    updates = []
    for course in variant["curves"]["return_percent"]:
        least = course[0] + 0.5 * (max(course) - course[0])
        updates.append(next(number for number, value in enumerate(course, start=1) if value >= least))
    return f"{median(updates):g}"


_TOLD = {
    "estimated": "estimated",
    "every_step": "measured at every step",
    "every_4_steps": "measured at every 4th step",
    "at_the_end": "measured at the end",
}
"""The rewards of `conf/study/reward_study.yaml`, by their names there."""


def reward_told(name: str) -> str:
    return _TOLD.get(name, name)


def measured_rewards_section(results: Results, published: Mapping[str, Any]) -> str:
    (graph, rewards), *_ = results["reward_study"].items()
    rows = [
        [
            reward_told(name),
            with_interval(one["latency_ratio_deployed"], 3),
            with_interval(one["latency_ratio_as_written"], 3),
            with_interval(one["training_s"], 0),
            f"{one['measurements']['value']:.0f}",
            f"{100.0 * one['noise_share']['value']:.0f}" if one["noise_share"] else "",
        ]
        for name, one in rewards.items()
    ]
    estimated = rewards["estimated"]
    measured = {name: one for name, one in rewards.items() if name != "estimated"}
    faster = {name: _compared(one, estimated) for name, one in measured.items()}
    longer = [one["training_s"]["value"] / estimated["training_s"]["value"] for one in measured.values()]
    controls = [row["latency"]["deployed"]["control"]["value"] for one in rewards.values() for row in one["seeds"]]
    steps = median([row["interactions"] for one in rewards.values() for row in one["seeds"]])
    head = (
        "reward",
        "as deployed, times as fast",
        "as written, times as fast",
        "training s",
        "graphs timed",
        "noise % of measured rewards",
    )
    return f"""## RLFlow, section 3.1.4: estimated and measured rewards, on {graph}

The model-free agent, told apart by its reward alone ({len(estimated["seeds"])} seeds, {steps:.0f} real rewrites each).
The estimate is the price by the model that ships; measured rewards time each graph end to end in ONNX Runtime as
deployed, and count as 0 where a difference is within noise. What an agent found is timed against the original
afterwards; the original against itself is {min(controls):.3f} to {max(controls):.3f}.

{markdown_table(head, rows)}
Against the estimate, what agents find as deployed is faster by {_named(faster, "more")}, slower by
{_named(faster, "less")}, and cannot be told apart by {_named(faster, "level")}. Training by measured rewards takes
{min(longer):.2g} to {max(longer):.2g} times as long. The paper found measuring too slow to be worth what it gains, and
prints no number.
"""


def _compared(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Is one reward's speed-up beyond, below or among that of the other, by their intervals?"""
    (low, high), (other_low, other_high) = (each["latency_ratio_deployed"]["ci95"] for each in (one, other))
    if low > other_high:
        return "more"
    return "less" if high < other_low else "level"


def _named(compared: Mapping[str, str], verdict: str) -> str:
    return names_told([reward_told(name) for name, said in compared.items() if said == verdict])
