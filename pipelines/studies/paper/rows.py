"""The rows of cells, and what is published of them: medians over seeds, with intervals.

    found = {("bert", "rlflow", 0): Row({"improvement_percent": 5.6}), ("bert", "rlflow", 1): ...}
    summary(found)["bert"]["rlflow"]["figures"]["improvement_percent"]          {"value": 5.6, "ci95": [5.5, 5.7], ...}

The invariant: a figure is published where all seeds of its graph and variant have it, and of each seed once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from rlflow.cost.base import CostModel
from rlflow.cost.work_ratios import work_ratios
from rlflow.ir.graph import Graph
from rlflow.method import OptimisationResult
from rlflow.rules.library import Library
from rlflow.runtime.session import Setting
from rlflow.runtime.timing.statistics import Estimate
from rlflow.schemas import plain
from studies.figures import Spread, nested

Key = tuple[str, str, int]
"""Graph, variant and seed."""
Document = dict[str, dict[str, dict[str, Any]]]
"""Graph -> variant -> figures, curves and counts over seeds (schema `paper`)."""


@dataclass(frozen=True)
class Row:
    """The outcome of one seed: figures by name with the unit in it, courses of figures, and counts of what happened.

    trajectory: the record of the rewrites that led to the agent's best graph, where there is one.
    """

    figures: Mapping[str, float]
    curves: Mapping[str, list[float]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    trajectory: str | None = None


class Cell(Protocol):
    """One agent on one graph by one seed."""

    def run(self) -> dict[str, Row]:
        """Return the rows by variant: several where one training serves several."""
        ...


def method_row(
    graph: Graph,
    result: OptimisationResult,
    prices: CostModel,
    rules: Library,
    training_s: float = 0.0,
    training_rewrites: int = 0,
    curves: Mapping[str, list[float]] | None = None,
) -> Row:
    """The row of a method: what it saves, at what effort, and how often it has applied each rule, by the rule's name.

    Memory is that of the paper's Table 2, its peak.
    """
    before, after = prices.cost(graph), prices.cost(result.best)
    peak_ratio = work_ratios(prices, graph, result.best)["peak_memory_ratio"]
    figures = {
        "improvement_percent": result.improvement_percent,
        "peak_memory_saved_percent": 100.0 * (1.0 - 1.0 / peak_ratio),
        "launches_saved_percent": saved_percent(before.launches, after.launches),
        "optimisation_s": result.wall_time_s,
        "evaluations": float(result.effort.rewrites),
        "training_s": training_s,
        "training_evaluations": float(training_rewrites),
    }
    applied = Counter(rules.get(step.rule).name for step in result.trajectory.steps)
    return Row(figures, curves or {}, dict(sorted(applied.items())), result.trajectory.to_json())


def latency_figures(setting: Setting, ratio: Estimate, times_ms: np.ndarray) -> dict[str, float]:
    """The latency of a reference over that of a model, with its interval, and the model's own; times_ms: (rounds,)."""
    return {
        f"latency_ratio_{setting}": ratio.value,
        f"latency_ratio_{setting}_low": ratio.ci95_low,
        f"latency_ratio_{setting}_high": ratio.ci95_high,
        f"latency_{setting}_ms": float(np.median(times_ms)),
    }


def saved_percent(before: float, after: float) -> float:
    """The saving in percent of `before`; nothing can be saved of 0."""
    return 100.0 * (before - after) / before if before else 0.0


def summary(found: Mapping[Key, Row]) -> Document:
    """The rows by graph and variant, put together over seeds."""
    document: Document = plain(
        {
            graph: {variant: _over_seeds(dict(sorted(rows.items()))) for variant, rows in variants.items()}
            for graph, variants in nested(found).items()
        }
    )
    return document


def _over_seeds(rows: Mapping[int, Row]) -> dict[str, Any]:
    """The medians of figures with their values, the curves of each seed, and the counts of all seeds together."""
    first, *others = rows.values()
    shared = [name for name in first.figures if all(name in row.figures for row in others)]
    counts: Counter[str] = Counter()
    for row in rows.values():
        counts.update(row.counts)
    return {
        "seeds": list(rows),
        "figures": {name: Spread.over([row.figures[name] for row in rows.values()]) for name in shared},
        "curves": {name: [row.curves[name] for row in rows.values()] for name in first.curves},
        "counts": dict(counts.most_common()),
    }
