"""The countable part of a cost: operations, bytes, launches, memory. No clock is involved."""

from __future__ import annotations

from dataclasses import dataclass

from rlflow.ir.graph import Graph, Node
from rlflow.ops import registry


@dataclass(frozen=True, slots=True)
class Work:
    """As in `Cost`, for a whole graph."""

    flops: int
    bytes_moved: int
    launches: int
    peak_memory_bytes: int
    load_time_flops: int


@dataclass(frozen=True, slots=True)
class NodeWork:
    """One execution of one node."""

    flops: int
    bytes_moved: int


class WorkCounter:
    """Counts the work of graphs that share most of their nodes: each node object is counted once."""

    def __init__(self) -> None:
        self._by_node: dict[Node, NodeWork] = {}

    def node(self, graph: Graph, identifier: int) -> NodeWork:
        node = graph.nodes[identifier]
        work = self._by_node.get(node)
        if work is None:
            kinds = [graph.type_of(ref) for ref in node.inputs if ref is not None]
            work = NodeWork(registry.flops(node, kinds), registry.bytes_moved(node, kinds))
            self._by_node[node] = work
        return work

    def graph(self, graph: Graph) -> Work:
        parts = [self.node(graph, i) for i in graph.order]
        constants = [i for i, n in graph.nodes.items() if n.constant]
        return Work(
            flops=sum(p.flops for p in parts),
            bytes_moved=sum(p.bytes_moved for p in parts),
            launches=len(parts),
            peak_memory_bytes=_weight_bytes(graph, constants) + _peak_activation_bytes(graph),
            load_time_flops=sum(self.node(graph, i).flops for i in constants if graph.nodes[i].inputs),
        )


def _nbytes(node: Node) -> int:
    return sum(kind.nbytes for kind in node.types if kind is not None)


def _weight_bytes(graph: Graph, constants: list[int]) -> int:
    """Constants that a running node reads: what is in memory after constant expressions have been folded."""
    running = graph.position
    return sum(
        _nbytes(graph.nodes[i])
        for i in constants
        if i in graph.output_nodes or any(c in running for c in graph.consumers[i])
    )


def _peak_activation_bytes(graph: Graph) -> int:
    """Each activation lives from its computation to its last reader."""
    last_read: dict[int, int] = {}
    for place, identifier in enumerate(graph.order):
        for source in graph.nodes[identifier].sources:
            last_read[source] = place
    dying: dict[int, list[int]] = {}
    for identifier, place in last_read.items():
        if not graph.nodes[identifier].constant and identifier not in graph.output_nodes:
            dying.setdefault(place, []).append(identifier)
    alive = sum(_nbytes(graph.nodes[i]) for i in graph.inputs)
    peak = alive
    for place, identifier in enumerate(graph.order):
        alive += _nbytes(graph.nodes[identifier])
        peak = max(peak, alive)
        alive -= sum(_nbytes(graph.nodes[i]) for i in dying.get(place, ()))
    return peak
