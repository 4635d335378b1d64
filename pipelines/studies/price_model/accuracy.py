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
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from rlflow.cost.predicted.noise import Noise
from rlflow.cost.region_record import GraphRecord, RewriteRecord

LEAST_REGION_MS = 0.02  # shorter regions are mostly noise: 35 % in the median
LEAST_GRAPH_MS = 0.2  # shorter graphs consist of such regions
_SIGMAS = 2.0

Prices = Mapping[str, float]
"""Milliseconds by signature."""


class Change(NamedTuple):
    """A rewrite's change of the price, measured and predicted, in milliseconds.

    `noise_ms` is the standard error of the measured change, `told_noise_ms` that of the predicted one if regions were
    wrong independently of each other.
    """

    real_ms: float
    told_ms: float
    noise_ms: float
    told_noise_ms: float


@dataclass(frozen=True)
class Errors:
    """Relative errors of regions and of graphs, and the changes of rewrites."""

    regions: list[float] = field(default_factory=list)
    graphs: list[float] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)


def met_in(
    family: str, families: Mapping[str, str], rewrites: Iterable[RewriteRecord], graphs: Iterable[GraphRecord]
) -> set[str]:
    """Return the signatures of all regions of a family: those met in it first, and those of its graphs and rewrites."""
    first_met = {signature for signature, first in families.items() if first == family}
    occurring = occurring_in(
        (rewrite for rewrite in rewrites if rewrite.family == family),
        (graph for graph in graphs if graph.family == family),
    )
    return (first_met | occurring) & families.keys()


def occurring_in(rewrites: Iterable[RewriteRecord], graphs: Iterable[GraphRecord]) -> set[str]:
    """Return the signatures of all regions of these rewrites and graphs."""
    before_and_after = (signature for rewrite in rewrites for signature in (*rewrite.before, *rewrite.after))
    return {*before_and_after, *(signature for graph in graphs for signature in graph.regions)}


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
            if real >= LEAST_GRAPH_MS:
                found.graphs.append(abs(told / real - 1.0))
    for rewrite in _distinct(rewrites):
        change = _change(rewrite)
        if change.keys() <= measured.keys():
            totals = (_total_ms(change, rewrite.views, p, view_ms) for p in (measured, predicted))
            found.changes.append(Change(*totals, *(_noise_ms(change, p, noise) for p in (measured, predicted))))
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
    clear = [change for change in found.changes if abs(change.real_ms) > _SIGMAS * change.noise_ms]
    if clear:
        content["rewrites"] = _of_changes(clear)
    return content


def taken(changes: Sequence[Change], sigmas: float) -> dict[str, Any]:
    """Return what becomes of rewrites that are taken where the prediction saves more than so many standard errors.

    `saved` is what those taken save together, as a share of what all rewrites save that save anything; `dearer` is the
    share of those taken that cost more than their noise. Rewrites within noise are judged as well.
    """
    chosen = [c for c in changes if -c.told_ms > sigmas * c.told_noise_ms]
    most_ms = -sum(min(0.0, c.real_ms) for c in changes)
    dearer = sum(c.real_ms > _SIGMAS * c.noise_ms for c in chosen)
    return {
        "saved": -sum(c.real_ms for c in chosen) / most_ms if most_ms else 0.0,
        "dearer": dearer / len(chosen) if chosen else 0.0,
        "cases": len(chosen),
    }


def _of_changes(changes: Sequence[Change]) -> dict[str, Any]:
    real, told, *_ = np.array(changes).T
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
