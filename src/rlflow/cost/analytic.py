"""A deterministic cost model: each node takes the longer of its arithmetic and its memory traffic, and a launch.

The roofline model (Williams et al., 2009). For tests, for CI and for machines on which nothing may be measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from rlflow.cost.base import Cost, CostContext
from rlflow.cost.work import NodeWork, WorkCounter
from rlflow.ir.graph import Graph
from rlflow.ir.node import Node
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry


@dataclass(frozen=True)
class AnalyticConfig:
    """A machine: peak arithmetic, memory bandwidth, and what starting one kernel takes."""

    gflops_per_s: float = 100.0
    gbytes_per_s: float = 20.0
    launch_us: float = 2.0


class AnalyticCost:
    """Prices by counting; weights count as traffic."""

    name = "analytic"

    def __init__(self, config: AnalyticConfig | None = None) -> None:
        self.config = config or AnalyticConfig()
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

    def node_ms(self, node: Node, operands: Sequence[TensorType | None]) -> float:
        """Price one node on operands of these types: `runtime_ms` is the sum over the nodes that run."""
        return self._work_ms(NodeWork(registry.flops(node, operands), registry.bytes_moved(node, operands)))

    def _node_ms(self, graph: Graph, identifier: int) -> float:
        return self._work_ms(self._work.node(graph, identifier))

    def _work_ms(self, work: NodeWork) -> float:
        arithmetic_ms = work.flops / self.config.gflops_per_s / 1e6
        traffic_ms = work.bytes_moved / self.config.gbytes_per_s / 1e6
        return max(arithmetic_ms, traffic_ms) + self.config.launch_us / 1e3


def analytic(context: CostContext) -> AnalyticCost:
    """Make the cost model "analytic"; its settings are those of `AnalyticConfig`."""
    return AnalyticCost(context.configure(AnalyticConfig))
