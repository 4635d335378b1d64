"""The page docs/pass_ordering.md: states, actions and rewards, and what each agent found.

    page(read_results(Path("data/results/pass_ordering/metrics.json")), documents, walks)

Its words are in pass_ordering.md.j2, and the rows of its tables here. The tables of observations, rewards and
algorithms are made from the code that they describe, so that a new name cannot be missing; figures are those of the
committed files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from experiment.formatting import markdown_table, rendered, with_interval

from rlflow.passes.agents.algorithms import ALGORITHMS
from rlflow.passes.environment.rewards import REWARDS
from rlflow.passes.environment.shaping import POTENTIALS
from rlflow.runtime.timing.statistics import estimate
from studies.pass_ordering import figures
from studies.pass_ordering.rows import rows_of

OBSERVED: Mapping[str, str] = {
    "counts": "(K + 1,) operations by type, as many types as the compiler's catalogue names and all others together",
    "cost": "(3,) FLOPs, transcendental operations and bytes accessed by cost analysis, in percent of the start",
    "tried": "(A,) the passes that were tried on this very program in this episode and left it as it is",
    "progress": "(1,) the share of the horizon that is over",
    "graph": "the program as a graph: nodes (N, 1 + F), an operator of `env.vocabulary` and its features; edges (E, 2)",
}
ENHANCEMENTS = ("ppo_shaped", "ppo_shaped_by_bytes", "ppo_value_features")
"""Agents that are PPO and one thing more, as in the paper's comparison."""
BASELINES = ("default", "fixpoint", "chain", "greedy", "beam", "random", "untrained", "best_known")
LEVEL_PERCENT = 0.1
"""So many more operations than the best known are as good."""
_TEMPLATE = Path(__file__).with_name("pass_ordering.md.j2")

Entrants = Mapping[str, Any]
"""The figures of each agent and baseline (schema `pass_ordering`)."""


def page(metrics: Mapping[str, Any], documents: Mapping[str, Any], walks: Sequence[Mapping[str, Any]]) -> str:
    """The whole page. documents: what was found on each graph, by backend. walks: rows of benchmarks/pass_walks.py."""
    values = {
        "metrics": metrics,
        "documents": documents,
        "walks": walks,
        "algorithms": ", ".join(f"`{name}`" for name in ALGORITHMS),
        "rewards": _described(REWARDS),
        "potentials": _described(POTENTIALS),
    }
    return rendered(_TEMPLATE, globals() | values)  # it calls the functions below by their names


def _described(functions: Mapping[str, Callable[..., Any]]) -> dict[str, str]:
    """The first line that each function says of itself."""
    return {name: (function.__doc__ or "").strip().partition("\n")[0] for name, function in functions.items()}


def agents_of(entrants: Entrants) -> list[str]:
    """The entrants that were trained, each by several seeds."""
    return [name for name, figures in entrants.items() if len(figures["seeds"]) > 1 and name not in BASELINES]


def in_order(entrants: Entrants) -> list[str]:
    """All entrants: baselines, those of every compiler first, and then agents."""
    agents = agents_of(entrants)
    known = [name for name in BASELINES if name in entrants]
    return [*known, *(name for name in entrants if name not in (*known, *agents)), *agents]


def best_of(entrants: Entrants) -> str:
    """The agent that leaves the fewest operations."""
    return max(agents_of(entrants), key=lambda agent: left_percent(entrants[agent]))


def left_percent(figures: Mapping[str, Any]) -> float:
    """The percentage by which the fixpoint leaves more operations than an entrant, the median over its seeds."""
    value: float = figures["fixpoint_count_ratio_percent"]["value"]
    return value


def told(figure: Mapping[str, Any] | None, digits: int = 2) -> str:
    """A figure in words, with an interval if it is one of several seeds."""
    if figure is None:
        return ""
    if len(figure["values"]) > 1:
        return with_interval(figure["value"], figure["ci95"], digits)
    return f"{figure['value']:.{digits}f}"


def verdict(entrants: Entrants, best: str) -> str:
    """Say how the best agent stands to the fixpoint and the best searches."""
    value, beam, chain = (left_percent(entrants[name]) for name in (best, "beam", "chain"))
    references = {"the fixpoint": 0.0, "beam search": beam, "the chain": chain}
    ahead = [name for name, other in references.items() if value > other]
    level = [name for name, other in references.items() if value == other]
    behind = [name for name, other in references.items() if value < other]
    standings = (("ahead of", ahead), ("level with", level), ("behind", behind))
    return "it is " + "; ".join(f"{standing} {' and '.join(names)}" for standing, names in standings if names)


def sources_of(document: Mapping[str, Any]) -> list[str]:
    """The held-out graphs of all families."""
    return [source for names in document["held_out"].values() for source in names]


def wins(document: Mapping[str, Any], agent: str) -> tuple[int, str, int]:
    """The graphs on which an agent is as good as the default, the one on which it is ahead most, and what it leaves."""
    seeds, default = document["entrants"][agent].values(), document["entrants"]["default"]["0"]["outcomes"]
    left = {
        source: sorted(row["outcomes"][source]["operations"] for row in seeds)[len(seeds) // 2]
        for source in sources_of(document)
    }
    as_good = sum(left[source] <= default[source]["operations"] for source in left)
    most = max(left, key=lambda source: float(default[source]["operations"] / left[source]))
    return as_good, most, left[most]


def best_known(document: Mapping[str, Any], source: str) -> int:
    """The fewest operations that anybody has left on a graph without changing what it computes."""
    return figures.best_known(rows_of(document), source).operations


def level(document: Mapping[str, Any], entrant: str) -> str:
    """The number of graphs on which an entrant is as good as the best known, of each seed."""
    most = {source: (1.0 + LEVEL_PERCENT / 100.0) * best_known(document, source) for source in sources_of(document)}
    rows = document["entrants"][entrant].values()
    counts = (sum(row["outcomes"][source]["operations"] <= most[source] for source in most) for row in rows)
    return ", ".join(map(str, counts))


def without_gain(document: Mapping[str, Any]) -> list[str]:
    """The graphs on which no order that is known leaves fewer operations than the default pipeline."""
    default = document["entrants"]["default"]["0"]["outcomes"]
    return [source for source in sources_of(document) if default[source]["operations"] <= best_known(document, source)]


def enhancements(entrants: Entrants) -> dict[str, str]:
    """The paper's enhancements against plain PPO, seed by seed."""
    changes = {}
    for name in [name for name in ENHANCEMENTS if "ppo" in entrants and name in entrants]:
        plain, enhanced = _by_seed(entrants["ppo"]), _by_seed(entrants[name])
        change = estimate([enhanced[seed] - plain[seed] for seed in sorted(plain.keys() & enhanced.keys())])
        changes[name] = with_interval(change.value, change.ci95)
    return changes


def _by_seed(figures: Mapping[str, Any]) -> dict[int, float]:
    return dict(zip(figures["seeds"], figures["fixpoint_count_ratio_percent"]["values"], strict=True))


def foreseen(document: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The errors of what the world model foresees, by passes ahead, and of the last state known; medians over seeds."""
    seeds = [row["open_loop"] for row in document["entrants"]["world_model"].values()]
    return {
        ahead: {name: median(seed[ahead][name] for seed in seeds) for name in seeds[0][ahead]}
        for ahead in sorted(set.intersection(*(set(seed) for seed in seeds)), key=int)
    }


def dreamt_percent(document: Mapping[str, Any]) -> float:
    """The return at the end of the training in the world model's dreams, the median over seeds."""
    return median(row["curve"][-1] for row in document["entrants"]["world_model"].values())


def removed_percent(document: Mapping[str, Any]) -> float:
    """The operations that its programs have fewer than their start: the mean over graphs, the median over seeds."""
    start = document["entrants"]["start"]["0"]["outcomes"]
    shares = [
        mean(outcome["operations"] / start[source]["operations"] for source, outcome in row["outcomes"].items())
        for row in document["entrants"]["world_model"].values()
    ]
    return median(100.0 * (1.0 - share) for share in shares)


_WALKED = (
    "",
    "random passes",
    "passes a second (by the compiler itself)",
    "answered by the cache",
    "failed passes",
    "wrong outputs",
    "lost processes",
    "memory, end over start",
)


def walked(rows: Sequence[Mapping[str, Any]]) -> str:
    """The random walks, a line for each compiler."""
    by_backend: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_backend.setdefault(row["name"].partition(":")[0], []).append(row)
    lines = []
    for backend, (steps, share, wrong, failed, lost, memory) in by_backend.items():
        speed = f"{steps['value']:.0f} ({steps['baseline_value']:.0f})"
        answered = f"{100 * share['value']:.0f} %"
        counts = [f"{row['value']:.0f}" for row in (failed, wrong, lost)]
        lines.append([f"`{backend}`", f"{steps['cases']}", speed, answered, *counts, f"{memory['value']:.2f}"])
    return markdown_table(_WALKED, lines)
