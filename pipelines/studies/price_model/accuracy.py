"""The accuracy of prices that were learned without a family of models, on what was measured in it.

    found = errors(graphs, prices)                  # of the graphs of the family, by prices that have not seen it
    figures(pooled([found, found_elsewhere]))

Four questions: is the price of a region right, is that of a graph, is the *sign* right of what rewriting changes, where
that is more than noise, and is the order of what may become of a graph? A search lives on the last two.

A graph's time is that of a whole run, launches included. The reorders of the blocked layout, which are no region's, are
taken as they were measured.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from rlflow.cost.region_record import GraphRecord
from studies.prices.variants import ORIGINAL, original_of, round_of

LEAST_REGION_MS = 0.02  # shorter regions are mostly noise
LEAST_GRAPH_MS = 0.2  # shorter graphs consist of such regions
_LEAST_VARIANTS = 5  # of one graph, to be put in order
_SIGMAS = 2.0

RegionPrice = Callable[[str, GraphRecord], float]
"""Milliseconds of the region of a signature in a graph."""


class Change(NamedTuple):
    """A change by rewriting as shares of a graph's time: of its whole run, as predicted, one standard error, and of the
    regions that were changed.
    """

    real: float
    told: float
    noise: float
    changed: float


@dataclass(frozen=True)
class Errors:
    """Relative errors of regions and of graphs, changes, and the rank correlations among the variants of one graph."""

    regions: list[float] = field(default_factory=list)
    graphs: list[float] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    ranks: list[float] = field(default_factory=list)


def errors(graphs: Iterable[GraphRecord], price: RegionPrice, view_ms: Callable[[GraphRecord], float]) -> Errors:
    """Compare predictions with what was measured in these graphs."""
    found = Errors()
    variants: defaultdict[tuple[str, str], list[tuple[GraphRecord, float]]] = defaultdict(list)
    seen: set[tuple[str, float]] = set()
    for graph in graphs:
        told_ms = {signature: price(signature, graph) for signature in graph.regions}
        for signature, (_, ms) in graph.regions.items():
            if ms >= LEAST_REGION_MS and (signature, graph.working_set_mb) not in seen:
                seen.add((signature, graph.working_set_mb))
                found.regions.append(abs(told_ms[signature] / ms - 1.0))
        if graph.ms >= LEAST_GRAPH_MS:
            regions_ms = sum(time.times * told_ms[signature] for signature, time in graph.regions.items())
            whole_ms = regions_ms + graph.views * view_ms(graph) + graph.reorders_ms
            found.graphs.append(abs(whole_ms / graph.ms - 1.0))
            variants[graph.configuration, graph.processor].append((graph, whole_ms))
    for group in variants.values():
        found.changes.extend(_changes(group))
        found.ranks.extend(_rank(group))
    return found


def _changes(group: Sequence[tuple[GraphRecord, float]]) -> Iterable[Change]:
    originals = {graph.variant: (graph, told_ms) for graph, told_ms in group if graph.variant.startswith(ORIGINAL)}
    noise = _noise(graph for graph, _ in group)
    for graph, told_ms in group:
        beside = originals.get(original_of(round_of(graph.variant)), originals.get(ORIGINAL))
        if beside is not None and graph.variant not in originals:
            before, before_told_ms = beside
            differences_ms = (graph.ms - before.ms, noise * np.hypot(graph.ms, before.ms), _changed_ms(before, graph))
            real, noise_of_it, changed = (ms / before.ms for ms in differences_ms)
            yield Change(real, told_ms / before_told_ms - 1.0, noise_of_it, changed)


def _changed_ms(before: GraphRecord, after: GraphRecord) -> float:
    """Return what a rewrite adds by what it changes: regions that both graphs have tell how the machine's pace has
    drifted between the two, since they do the same work."""
    both = {s: min(time.times, after.regions[s].times) for s, time in before.regions.items() if s in after.regions}
    kept_before, kept_after = (math.fsum(n * g.regions[s].ms for s, n in both.items()) for g in (before, after))
    return (after.ms - kept_after) - (before.ms - kept_before)


def _noise(variants: Iterable[GraphRecord]) -> float:
    """Return the standard error of a time, as a share of it: that of all variants of a model together. A
    standard error of two sessions is so uncertain that one difference in three lies beyond twice of it by chance."""
    return float(np.sqrt(np.mean([(graph.sigma_ms / graph.ms) ** 2 for graph in variants])))


def _rank(group: Sequence[tuple[GraphRecord, float]]) -> Iterable[float]:
    """Yield the rank correlation of distinct variants, if there are enough of them that differ by more than noise."""
    by_told = {told_ms: graph for graph, told_ms in group}
    real = [graph.ms for graph in by_told.values()]
    noise_ms = _SIGMAS * _noise(by_told.values()) * float(np.median(real))
    if len(by_told) >= _LEAST_VARIANTS and np.ptp(real) > 2 * noise_ms:
        yield float(spearmanr(real, list(by_told)).statistic)


def pooled(parts: Iterable[Errors]) -> Errors:
    """Return all errors together."""
    total = Errors()
    for part in parts:
        for name, values in vars(part).items():
            getattr(total, name).extend(values)
    return total


def figures(found: Errors) -> dict[str, Any]:
    """Return medians, 90 % quantiles, the share of right signs and the median rank correlation, each with its number of
    cases; without those that have none.
    """
    content: dict[str, Any] = {}
    for name, values in (("regions", found.regions), ("graphs", found.graphs)):
        if values:
            median, p90 = np.quantile(values, (0.5, 0.9))
            content[name] = {"median": float(median), "p90": float(p90), "cases": len(values)}
    for name, changes in (
        ("changes", [(c.real, c.told, c.noise) for c in found.changes]),
        ("changed_regions", [(c.changed, c.told, c.noise) for c in found.changes]),
    ):
        clear = [(real, told) for real, told, noise in changes if abs(real) > _SIGMAS * noise]
        if clear:
            real, told = np.array(clear).T
            content[name] = {
                "sign": float(np.mean(np.sign(real) == np.sign(told))),
                "majority_sign": float(max(np.mean(real > 0), np.mean(real < 0))),
                "cases": len(clear),
            }
    if found.ranks:
        content["ranks"] = {"median": float(np.median(found.ranks)), "cases": len(found.ranks)}
    return content
