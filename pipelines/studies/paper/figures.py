"""Figures of the page of results: medians over seeds, and what the page says by them. results.md.j2 uses these names.

    told(variant, "improvement_percent")            "5.50 [5.00, 6.00]", or "5.50" of one seed
    ahead(agents, "rlflow", "taso")                 ["bert"], the graphs on which the first saves more

The invariant: savings that differ by no more than `SAME_POINTS` are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median as middle
from typing import Any

from experiment.formatting import markdown_table, with_interval

Variant = Mapping[str, Any]
"""The figures of one agent or temperature on one graph (studies.paper.documents)."""
Variants = Mapping[Any, Variant]
Table = Mapping[str, Variants]
"""Graph -> agent or temperature -> figures."""
SAME_POINTS = 0.05
"""Percentage points by which savings may differ and still be called the same."""
_CORRELATED = {
    "memory accesses": "correlation_runtime_ms_bytes_moved",
    "FLOPs": "correlation_runtime_ms_flops",
    "launches": "correlation_runtime_ms_launches",
}
five_meanings = {"R1": "0.8 / 0.2", "R2": "runtime", "R3": "0.1 / 0.9", "R4": "0.5 / 0.5", "R5": "incremental"}
_REWARDS = {
    "estimated": "estimated",
    "every_step": "measured at every step",
    "every_4_steps": "measured at every 4th step",
    "at_the_end": "measured at the end",
}
"""The rewards of `conf/study/reward_study.yaml`, by their names there."""


def value(variant: Variant, name: str) -> float:
    """The median over seeds."""
    found: float = variant["figures"][name]["value"]
    return found


def median(variant: Variant, name: str, digits: int = 2) -> str:
    """The median over seeds alone."""
    return f"{value(variant, name):.{digits}f}"


def told(variant: Variant, name: str, digits: int = 2) -> str:
    """The median, with its interval where there are several seeds; empty where there is no such figure."""
    if name not in variant["figures"]:
        return ""
    figure = variant["figures"][name]
    return interval(figure, digits) if len(figure["values"]) > 1 else median(variant, name, digits)


def interval(figure: Mapping[str, Any], digits: int = 2) -> str:
    """A median with its interval."""
    return with_interval(figure["value"], figure["ci95"], digits)


def latency(variant: Variant, setting: str) -> str:
    """A ratio of latencies with its interval over rounds."""
    name = f"latency_ratio_{setting}"
    return with_interval(value(variant, name), (value(variant, f"{name}_low"), value(variant, f"{name}_high")), 3)


def variant(table: Table, name: str) -> dict[str, Variant]:
    """One agent by graph."""
    return {graph: found[name] for graph, found in table.items() if name in found}


def medians(variants: Variants, name: str) -> list[float]:
    return [value(one, name) for one in variants.values()]


def best(variants: Variants, name: str) -> Any:
    """The variant of the largest median."""
    return max(variants, key=lambda key: value(variants[key], name))


def below(variants: Variants, name: str, limit: float) -> list[str]:
    return [key for key, one in variants.items() if value(one, name) < limit]


def level_with(variants: Variants, chosen: Any, name: str) -> list[Any]:
    """The others whose intervals meet that of a variant."""
    low, high = variants[chosen]["figures"][name]["ci95"]
    intervals = {key: one["figures"][name]["ci95"] for key, one in variants.items() if key != chosen}
    return [key for key, (other_low, other_high) in intervals.items() if low <= other_high and other_low <= high]


def ahead(table: Table, one: str, other: str) -> list[str]:
    """The graphs on which one method saves more than another."""
    both = {graph: found for graph, found in table.items() if one in found and other in found}
    return [graph for graph, found in both.items() if gain_points(found, one, other) > SAME_POINTS]


def gain_points(found: Variants, one: str, other: str) -> float:
    """The points by which one method saves more than another."""
    return value(found[one], "improvement_percent") - value(found[other], "improvement_percent")


def range_text(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f} %" if values else "nothing that was measured"


def most_seeds(table: Table) -> int:
    return max(len(one["seeds"]) for variants in table.values() for one in variants.values())


# Walks


def versions_met(walks: Variants) -> int:
    """The graphs that all walks have met."""
    return sum(int(sum(walk["figures"]["graphs"]["values"])) for walk in walks.values())


def correlations(walks: Variants) -> dict[str, float]:
    """The median correlation over graphs, of each cost that varies on one of them."""
    known = {cost: [walk for walk in walks.values() if name in walk["figures"]] for cost, name in _CORRELATED.items()}
    return {cost: middle([value(walk, _CORRELATED[cost]) for walk in those]) for cost, those in known.items() if those}


# Rewards


def five_rewards(variants: Variants) -> dict[str, Variant]:
    return {name: one for name, one in variants.items() if name in five_meanings}


def by_alpha(variants: Variants) -> dict[float, Variant]:
    """The variants of the grid; those of Figure 5 that are a point of it stand in for it."""
    grid = {0.8: variants["R1"], 0.1: variants["R3"], 0.5: variants["R4"]}
    grid |= {float(name[6:]): one for name, one in variants.items() if name.startswith("alpha ")}
    return dict(sorted(grid.items()))


def half_way(variant: Variant) -> str:
    """The updates after which the return was first half way from its first to its best; the median over seeds."""
    updates = []
    for course in variant["curves"]["return_percent"]:
        least = course[0] + 0.5 * (max(course) - course[0])
        updates.append(next(number for number, reached in enumerate(course, start=1) if reached >= least))
    return f"{middle(updates):g}"


def reward_text(name: str) -> str:
    return _REWARDS.get(name, name)


def reward_seeds(rewards: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [row for one in rewards.values() for row in one["seeds"]]


def compared_with_estimate(rewards: Mapping[str, Any]) -> dict[str, list[str]]:
    """The measured rewards whose speed-up is beyond, below or among that of the estimate, by their intervals."""
    low, high = rewards["estimated"]["latency_ratio_deployed"]["ci95"]
    found: dict[str, list[str]] = {"more": [], "less": [], "level": []}
    for name, one in rewards.items():
        own_low, own_high = one["latency_ratio_deployed"]["ci95"]
        if name != "estimated":
            found["more" if own_low > high else "less" if own_high < low else "level"].append(reward_text(name))
    return found


def training_ratios(rewards: Mapping[str, Any]) -> list[float]:
    """Return how many times as long training by each measured reward takes."""
    seconds = {name: one["training_s"]["value"] for name, one in rewards.items()}
    estimated_s = seconds.pop("estimated")
    return [each / estimated_s for each in seconds.values()]


# RLFlow's agent


def methods_of(agents: Table) -> list[str]:
    """The methods of all graphs, but the original."""
    return list(dict.fromkeys(name for found in agents.values() for name in found if name != "original"))


def by_method(agents: Table, methods: Sequence[str], figure: str) -> str:
    """A table of one figure, with a column for each method."""
    rows = [
        [graph, *(told(found[m], figure) if m in found else "" for m in methods)] for graph, found in agents.items()
    ]
    return markdown_table(("graph", *methods), rows)


def evaluations_percent(agents: Table) -> list[float]:
    """The real rewrites of RLFlow's training in percent of those of the model-free agent, by graph."""
    name = "training_evaluations"
    both = [found for found in agents.values() if "model-free" in found]
    return [100.0 * value(found["rlflow"], name) / value(found["model-free"], name) for found in both]


def saving(agents: Table, name: str) -> list[str]:
    """The graphs of which RLFlow saves some of a cost."""
    return [graph for graph, found in agents.items() if value(found["rlflow"], name) > SAME_POINTS]


def rewritten(agents: Table, name: str) -> dict[str, Variant]:
    """A method by graph, without those that it has left as they were: what differs in their latency is noise."""
    return {graph: one for graph, one in variant(agents, name).items() if one["counts"]}


def faster(timed: Variants) -> list[str]:
    """The graphs on which a ratio of latencies counts as a gain as deployed: by 2 % at least, beyond its interval."""
    name = "latency_ratio_deployed"
    return [g for g, one in timed.items() if value(one, f"{name}_low") > 1.0 and value(one, name) >= 1.02]


def slower(timed: Variants) -> list[str]:
    """The graphs on which it counts as a loss."""
    name = "latency_ratio_deployed"
    return [g for g, one in timed.items() if value(one, f"{name}_high") < 1.0 and value(one, name) <= 0.98]


def quicker_than_taso(agents: Table) -> list[str]:
    name = "optimisation_s"
    return [graph for graph, found in agents.items() if value(found["rlflow"], name) < value(found["taso"], name)]


def trained_longer_than_taso(agents: Table) -> list[str]:
    """The graphs on which training alone takes longer than TASO's search."""
    return [
        graph
        for graph, found in agents.items()
        if value(found["rlflow"], "training_s") > value(found["taso"], "optimisation_s")
    ]


def learning(agents: Table) -> list[str]:
    """The graphs on which V's loss falls by every seed."""
    courses = {graph: found["rlflow"]["curves"]["encoder/saving"] for graph, found in agents.items()}
    return [graph for graph, each in courses.items() if all(course[-1] < course[0] for course in each)]


def ends(courses: Sequence[Sequence[float]]) -> str:
    """The medians of where courses begin and end."""
    return f"{middle([course[0] for course in courses]):.3f}, {middle([course[-1] for course in courses]):.3f}"


def leading(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in list(counts.items())[:3])


def most_applied(agents: Table) -> tuple[str, str, float]:
    """The graph on which one rule is applied most often, the rule, and how often by each seed."""
    counts = {graph: found["rlflow"]["counts"] for graph, found in agents.items() if found["rlflow"]["counts"]}
    graph = max(counts, key=lambda name: max(counts[name].values()))
    rule, times = next(iter(counts[graph].items()))
    return graph, rule, times / len(agents[graph]["rlflow"]["seeds"])


def as_good(unseen: Table) -> int:
    """The cases in which the controller saves as much as greedy search in states that it has not seen."""
    found = [(value(one, "improvement_percent"), value(one, "greedy_percent")) for one in _each(unseen)]
    return sum(acting >= greedy - SAME_POINTS for acting, greedy in found)


def cases(unseen: Table) -> int:
    return len(_each(unseen))


def _each(table: Table) -> list[Variant]:
    return [one for variants in table.values() for one in variants.values()]


def over_networks(agents: Table) -> dict[str, list[float]]:
    """The savings on transformers, and on other networks."""
    saved = {graph: value(found["rlflow"], "improvement_percent") for graph, found in agents.items()}
    transformers = [saved.pop(graph) for graph in ("bert", "vit") if graph in saved]
    return {"transformers": transformers, "others": list(saved.values())}


# Dreams


def by_temperature(variants: Variants, prefix: str) -> dict[float, Variant]:
    return {float(name.removeprefix(prefix)): one for name, one in variants.items() if name.startswith(prefix)}


def dream_apart(by_tau: Variants) -> float | None:
    """The largest percentage by which a dream is away from reality at temperatures from 0.5 to 1.5; None of none."""
    scores = [
        (value(one, "dream_percent"), value(one, "real_percent")) for tau, one in by_tau.items() if 0.5 <= tau <= 1.5
    ]
    shares = [abs(dreamt - real) / abs(real) if real else float("inf") for dreamt, real in scores]
    return 100.0 * max(shares) if shares else None


def papers_scores(published: Mapping[str, Any], tau: float) -> list[str]:
    """The paper's scores in the dream and in reality at a temperature."""
    printed = {row[0]: row[1:] for row in published["table_3"]}
    return [f"{score:.2f}" for score in printed.get(tau, [])] or ["", ""]


def scores_at_one(sweep: Mapping[str, Any]) -> str:
    """Dreamt and real scores at the temperature 1 by graph."""
    points = [(graph, point) for graph, found in sweep.items() for point in found["points"]]
    return "; ".join(
        f"{graph} {point['dream_score_percent']:.2f} / {point['real_score_percent']:.2f}"
        for graph, point in points
        if point["temperature"] == 1.0
    )


def dream_step_ms(bench: Iterable[Mapping[str, Any]]) -> float:
    speed = {row["name"]: row["value"] for row in bench}
    return 1000.0 / float(speed["dream/dream_steps_per_s (64 dreams)"])


def shares_of_interactions(efficiency: Mapping[str, Any]) -> str:
    """The share of real steps that dreaming needs, by graph."""
    return "; ".join(
        f"{interval(found['share_of_interactions'])} on {graph}, {found['as_good']} of {len(found['seeds'])} seeds"
        for graph, found in efficiency.items()
        if found["share_of_interactions"] is not None
    )


# TASO's search


def backtracking(headroom: Mapping[str, Any], graphs: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return the percent that the search has saved on each graph, by the number of rewrites."""
    found = {graph: headroom[graph]["analytic"]["backtracking"]["at"] for graph in graphs if graph in headroom}
    return {graph: {most: at["improvement_percent"] for most, at in by.items()} for graph, by in found.items()}


def saved_by_budget(searched: Mapping[str, Mapping[str, float]]) -> list[list[str]]:
    return [[graph, *(f"{saved:.2f}" for saved in by_budget.values())] for graph, by_budget in searched.items()]


def late(searched: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The graphs on which more than a tenth of the savings came in the last nine tenths of the budget."""
    saved = {graph: list(by_budget.values()) for graph, by_budget in searched.items()}
    return [graph for graph, each in saved.items() if each[-3] < 0.9 * each[-1]]


# X-RLflow's agent


def better_policies(candidates: Table) -> tuple[int, int]:
    """The policies that save more than greedy search alone, and how many of them did so in no trial after an update."""
    better = []
    for found in candidates.values():
        least_percent = value(found["greedy"], "improvement_percent") + SAME_POINTS
        agent = found["x-rlflow alone"]
        runs = zip(agent["figures"]["improvement_percent"]["values"], agent["curves"]["trial_percent"], strict=True)
        better += [saved > max(trials) + SAME_POINTS for saved, trials in runs if saved > least_percent]
    return len(better), sum(better)


def least_transferred(shapes: Table) -> float:
    """The least that a policy saves on a shape it has not seen, in percent of what one trained on it saves."""
    found = [
        (value(one, "transferred_percent"), value(one, "special_percent"))
        for by_shape in shapes.values()
        for one in by_shape.values()
    ]
    return 100 * min(transferred / special if special else 1.0 for transferred, special in found)
