"""A deterministic cost model: each node takes the longer of its arithmetic and its memory traffic, and a launch.

The roofline model (Williams et al., 2009). For tests, for CI and for machines on which nothing may be measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

from rlflow.cost.base import Cost, CostContext
from rlflow.cost.work import WorkCounter
from rlflow.ir.graph import Graph


@dataclass(frozen=True)
class AnalyticConfig:
    """A machine: peak arithmetic, memory bandwidth, and what starting one kernel takes."""

    gflops_per_s: float = 100.0
    gbytes_per_s: float = 20.0
    launch_us: float = 2.0


@dataclass(frozen=True)
class GpuConfig(AnalyticConfig):
    """A machine on which most nodes take no longer than their launch, as on a GPU; no GPU was measured for it."""

    gflops_per_s: float = 10_000.0
    gbytes_per_s: float = 500.0
    launch_us: float = 5.0


class AnalyticCost:
    """Prices by counting; weights count as traffic. `name` tells one machine's prices from another's."""

    def __init__(self, config: AnalyticConfig | None = None, name: str = "analytic") -> None:
        self.config = config or AnalyticConfig()
        self.name = name
        self._work = WorkCounter()

    def runtime_ms(self, graph: Graph) -> float:
        return fsum(self._node_ms(graph, i) for i in graph.order)

    def cost(self, graph: Graph) -> Cost:
        work = self._work.graph(graph)
        return Cost(
            self.runtime_ms(graph),
            work.flops,
            work.bytes_moved,
            work.launches,
            work.load_time_flops,
        )

    def _node_ms(self, graph: Graph, identifier: int) -> float:
        work = self._work.node(graph, identifier)
        arithmetic_ms = work.flops / self.config.gflops_per_s / 1e6
        traffic_ms = work.bytes_moved / self.config.gbytes_per_s / 1e6
        return max(arithmetic_ms, traffic_ms) + self.config.launch_us / 1e3


def analytic(context: CostContext) -> AnalyticCost:
    """Make the cost model "analytic"; its settings are those of `AnalyticConfig`."""
    return AnalyticCost(context.configure(AnalyticConfig))


def gpu(context: CostContext) -> AnalyticCost:
    """Make the cost model "gpu", the same roofline on another machine; its settings are those of `GpuConfig`."""
    return AnalyticCost(context.configure(GpuConfig), name="gpu")
