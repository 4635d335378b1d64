"""The accuracy of prices that were learned without a family of models, on what was measured in it.

    signatures = met_in("bert", families, rewrites, graphs)     # everything that BERT's graphs and rewrites consist of
    found = errors(measured, predicted, rewrites, graphs, view_ms, noise)
    figures(pooled([found, found_elsewhere]))

Three questions: is the price of a region right, is the sum over a graph, and is the *sign* right of what a rewrite
changes, where that is more than noise? The last one is what a search lives on.

Invariant: no region that occurs in a graph or rewrite of the family is among those that are learned from, whichever
family it was met in first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from rlflow.cost.predicted.noise import Noise
from rlflow.cost.region_record import GraphRecord, RewriteRecord

LEAST_REGION_MS = 0.02  # shorter regions are mostly noise: 20 % in the median
_SIGMAS = 2.0

Prices = Mapping[str, float]
"""Milliseconds by signature."""


@dataclass(frozen=True)
class Errors:
    """Relative errors of regions and of graphs, and the changes of rewrites beyond noise: (measured, predicted) ms."""

    regions: list[float] = field(default_factory=list)
    graphs: list[float] = field(default_factory=list)
    changes: list[tuple[float, float]] = field(default_factory=list)


def met_in(
    family: str, families: Mapping[str, str], rewrites: Iterable[RewriteRecord], graphs: Iterable[GraphRecord]
) -> set[str]:
    """Return the signatures of all regions of a family: those met in it first, and those of its graphs and rewrites."""
    own = {signature for signature, first in families.items() if first == family}
    for rewrite in rewrites:
        if rewrite.family == family:
            own.update(rewrite.before, rewrite.after)
    for graph in graphs:
        if graph.family == family:
            own.update(graph.regions)
    return own & families.keys()


def errors(
    measured: Prices,
    predicted: Prices,
    rewrites: Iterable[RewriteRecord],
    graphs: Iterable[GraphRecord],
    view_ms: float,
    noise: Noise,
) -> Errors:
    """Compare predictions with measurements. Rewrites and graphs of which a region was not measured are left out."""
    found = Errors()
    for signature, ms in measured.items():
        if ms >= LEAST_REGION_MS:
            found.regions.append(abs(predicted[signature] / ms - 1.0))
    for graph in graphs:
        if graph.regions.keys() <= measured.keys():
            real, told = (_total_ms(graph.regions, graph.views, p, view_ms) for p in (measured, predicted))
            found.graphs.append(abs(told / real - 1.0))
    for rewrite in _distinct(rewrites):
        change = _change(rewrite)
        if change.keys() <= measured.keys():
            real, told = (_total_ms(change, rewrite.views, p, view_ms) for p in (measured, predicted))
            if abs(real) > _SIGMAS * _noise_ms(change, measured, noise):
                found.changes.append((real, told))
    return found


def pooled(parts: Iterable[Errors]) -> Errors:
    """Return all errors together."""
    total = Errors()
    for part in parts:
        total.regions.extend(part.regions)
        total.graphs.extend(part.graphs)
        total.changes.extend(part.changes)
    return total


def figures(found: Errors) -> dict[str, Any]:
    """Return medians, 90 % quantiles and the share of right signs, each with its number of cases; without those that
    have none."""
    content: dict[str, Any] = {}
    for name, values in (("regions", found.regions), ("graphs", found.graphs)):
        if values:
            median, p90 = np.quantile(values, (0.5, 0.9))
            content[name] = {"median": float(median), "p90": float(p90), "cases": len(values)}
    if found.changes:
        content["rewrites"] = _of_changes(found.changes)
    return content


def _of_changes(changes: Sequence[tuple[float, float]]) -> dict[str, Any]:
    real, told = np.array(changes).T
    rank = float(spearmanr(real, told).statistic) if len(changes) > 1 and np.ptp(real) and np.ptp(told) else 0.0
    return {
        "sign": float(np.mean(np.sign(real) == np.sign(told))),
        "majority_sign": float(max(np.mean(real > 0), np.mean(real < 0))),
        "spearman": rank,
        "cases": len(changes),
    }


def with_measured(predicted: Prices, measured: Prices, signatures: Collection[str]) -> dict[str, float]:
    """Return predictions, and measurements in the place of some."""
    return {s: measured[s] if s in signatures else ms for s, ms in predicted.items()}


def _distinct(rewrites: Iterable[RewriteRecord]) -> list[RewriteRecord]:
    """Return one rewrite for each change: twelve layers that are alike do not count twelve times."""
    seen: dict[Any, RewriteRecord] = {}
    for rewrite in rewrites:
        seen.setdefault((frozenset(_change(rewrite).items()), rewrite.views), rewrite)
    return list(seen.values())


def _change(rewrite: RewriteRecord) -> dict[str, int]:
    """Return how many more regions there are of each signature after a rewrite; those that stay cancel."""
    counts = Counter(rewrite.after)
    counts.subtract(rewrite.before)
    return {signature: count for signature, count in counts.items() if count}


def _total_ms(regions: Mapping[str, int], views: int, prices: Prices, view_ms: float) -> float:
    return sum(count * prices[signature] for signature, count in regions.items()) + views * view_ms


def _noise_ms(change: Mapping[str, int], measured: Prices, noise: Noise) -> float:
    """Return the standard error of a measured change: of one region always the same error, of others their own."""
    return float(np.hypot.reduce([count * noise.sigma_ms(measured[s]) for s, count in change.items()] or [0.0]))
