"""The cost of work on a machine, as the known prices of one graph tell, and the unit in which prices are told.

    profile = PriceProfile.of(start, cost_model)
    profile.ms(flops, bytes_moved)          # roughly what a node would cost that no graph has had yet
    price_ms / profile.median_ms            # a price as it is told to a network: in nodes of middling price

A cost model that is a sum over parts (`cost.base.LocalCostModel`) may price several nodes together. A node's share in
the price of its part is as large as its estimate is among theirs.

The invariant: prices that are all s times as high give a profile that is s times as high, so that a price in its unit
means the same at every cost model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from statistics import median

import numpy as np
from scipy.optimize import nnls

from rlflow.cost.base import LocalCostModel
from rlflow.cost.work import NodeWork, WorkCounter
from rlflow.ir.graph import Graph

_GIGA = 1e9


@dataclass(frozen=True)
class PriceProfile:
    """The milliseconds of a launch, of arithmetic and of memory traffic, and the median price of a node.

    `median_ms` is that of the nodes that cost anything, 1 ms where none does.
    """

    launch_ms: float
    ms_per_gflop: float
    ms_per_gbyte: float
    median_ms: float

    @classmethod
    def of(cls, graph: Graph, cost_model: LocalCostModel) -> PriceProfile:
        """Fit the profile to the parts of a graph: non-negative least squares of relative errors."""
        counter, parts = WorkCounter(), list(cost_model.parts(graph))
        works = [[counter.node(graph, node) for node in part.nodes] for part in parts]
        prices_ms = [part.ms for part in parts]
        coefficients = _fitted(list(map(_amounts, works)), prices_ms)
        fitted = cls(*coefficients, median_ms=1.0)
        shares_ms = [ms for work, price in zip(works, prices_ms, strict=True) for ms in fitted.shares_ms(work, price)]
        return cls(*coefficients, median_ms=median([ms for ms in shares_ms if ms > 0] or [1.0]))

    def ms(self, flops: int, bytes_moved: int) -> float:
        """Return the estimated price of one node."""
        return self.launch_ms + self.ms_per_gflop * flops / _GIGA + self.ms_per_gbyte * bytes_moved / _GIGA

    def shares_ms(self, work: Sequence[NodeWork], price_ms: float) -> list[float]:
        """Split the price of a part among its nodes, equally where nothing is estimated to cost anything."""
        estimates_ms = [self.ms(node.flops, node.bytes_moved) for node in work]
        total_ms = fsum(estimates_ms)
        if total_ms == 0.0:
            return [price_ms / len(work)] * len(work)
        return [price_ms * (estimate / total_ms) for estimate in estimates_ms]


def _amounts(work: Sequence[NodeWork]) -> tuple[float, float, float]:
    """The launches, the billions of operations and those of bytes."""
    return len(work), sum(w.flops for w in work) / _GIGA, sum(w.bytes_moved for w in work) / _GIGA


def _fitted(amounts: Sequence[tuple[float, float, float]], prices_ms: Sequence[float]) -> tuple[float, float, float]:
    """The cost of each kind of work; nothing, where there is none of it or all is free."""
    prices = np.array(prices_ms)
    if not (prices > 0).any():
        return 0.0, 0.0, 0.0
    weights = 1.0 / np.maximum(prices, prices[prices > 0].min())
    weighted = np.array(amounts) * weights[:, None]
    scale = np.maximum(weighted.max(axis=0), np.finfo(float).tiny)  # columns of one size, for the solver's tolerance
    found, _ = nnls(weighted / scale, prices * weights)
    launch_ms, ms_per_gflop, ms_per_gbyte = map(float, found / scale)
    return launch_ms, ms_per_gflop, ms_per_gbyte
