"""A deterministic cost model: each node takes the longer of its arithmetic and its memory traffic, and a launch.

The roofline model (Williams et al., 2009). For tests, for CI and for machines on which nothing may be measured.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from math import fsum
from weakref import WeakKeyDictionary

from rlflow.cost.base import Cost, CostContext, Part, Surroundings
from rlflow.cost.exact_sum import Exact, exact
from rlflow.cost.work import WorkCounter
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.node import Node, Ref
from rlflow.ir.preview import Preview, runs


@dataclass(frozen=True)
class AnalyticConfig:
    """A machine: peak arithmetic, memory bandwidth, and what starting one kernel takes.

    `InputError` for a rate that is not positive or a negative time.
    """

    gflops_per_s: float = 100.0
    gbytes_per_s: float = 20.0
    launch_us: float = 2.0

    def __post_init__(self) -> None:
        for name in ("gflops_per_s", "gbytes_per_s"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive, not {getattr(self, name)}")
        if not self.launch_us >= 0:
            raise InputError(f"launch_us cannot be negative: {self.launch_us}")


@dataclass(frozen=True)
class GpuConfig(AnalyticConfig):
    """A machine on which launches take much of the time, as on a GPU; no GPU was measured for it."""

    gflops_per_s: float = 10_000.0
    gbytes_per_s: float = 500.0
    launch_us: float = 5.0


class AnalyticCost:
    """Prices by counting; weights count as traffic. `name` tells one machine's prices from another's."""

    def __init__(self, config: AnalyticConfig | None = None, name: str = "analytic") -> None:
        self.config = config or AnalyticConfig()
        self.name = name
        self._work = WorkCounter()
        self._sums: WeakKeyDictionary[Graph, Exact] = WeakKeyDictionary()

    def runtime_ms(self, graph: Graph) -> float:
        return fsum(self.exact_ms(graph))

    def exact_ms(self, graph: Graph) -> Exact:
        """Return the sum over all nodes that run, from the parent's where that is known."""
        known = self._sums.get(graph)
        if known is None:
            known = self._sums[graph] = exact(self._terms_ms(graph))
        return known

    def _terms_ms(self, graph: Graph) -> list[float]:
        parent = graph.edit.parent() if graph.edit else None
        before = self._sums.get(parent) if parent is not None else None
        if parent is None or before is None or graph.edit is None:
            return [self._node_ms(graph, i) for i in graph.order]
        change = graph.edit.change
        made = [self._node_ms(graph, i) for i in change.added if runs(graph.nodes[i])]
        gone = (i for i in change.removed if i in parent.nodes and runs(parent.nodes[i]))
        return [*before, *made, *(-self._node_ms(parent, i) for i in gone)]

    def surroundings(self, graph: Graph, edit: Preview) -> Surroundings:
        """Write down which nodes come and go: an edit keeps the types of all values, and with them all other prices."""

        def described(nodes: Iterable[Node]) -> Hashable:
            return tuple(sorted((node.signature, *map(type_of, node.inputs)) for node in nodes))

        def type_of(ref: Ref | None) -> str:
            if ref is None:
                return ""
            return str((edit.added.get(ref.node) or graph.nodes[ref.node]).types[ref.index])

        made = (node for i, node in edit.added.items() if i not in edit.idle and runs(node))
        gone = (graph.nodes[i] for i in edit.removed)
        return Surroundings((described(made), described(gone)), edit.removed)

    def disturbed(self, graph: Graph) -> tuple[int, ...]:
        """Return no node: all that counts is which nodes come and go."""
        return ()

    def parts(self, graph: Graph) -> Iterator[Part]:
        """List the nodes that run, each by itself."""
        return (self.part_of(graph, node) for node in graph.order)

    def part_of(self, graph: Graph, node: int) -> Part:
        """Return a node by itself, with its price."""
        return Part((node,), self._node_ms(graph, node))

    def cost(self, graph: Graph) -> Cost:
        return Cost.of(self.runtime_ms(graph), self._work.graph(graph))

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
