"""The countable part of a cost: operations, bytes, launches, memory. No clock is involved."""

from __future__ import annotations

from collections.abc import Mapping
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
    """One execution of one node; `result_bytes` is what it leaves in memory."""

    flops: int
    bytes_moved: int
    result_bytes: int


class WorkCounter:
    """Counts the work of graphs that share most of their nodes: each node object is counted once."""

    def __init__(self) -> None:
        self._by_node: dict[Node, NodeWork] = {}

    def node(self, graph: Graph, identifier: int) -> NodeWork:
        node = graph.nodes[identifier]
        work = self._by_node.get(node)
        if work is None:
            kinds = [graph.type_of(ref) for ref in node.inputs if ref is not None]
            result_bytes = sum(kind.nbytes for kind in node.types if kind is not None)
            work = NodeWork(registry.flops(node, kinds), registry.bytes_moved(node, kinds), result_bytes)
            self._by_node[node] = work
        return work

    def graph(self, graph: Graph) -> Work:
        parts = {i: self.node(graph, i) for i in graph.nodes}
        running = graph.position
        folded = [i for i, n in graph.nodes.items() if n.constant and _is_read(graph, i)]
        return Work(
            flops=sum(parts[i].flops for i in running),
            bytes_moved=sum(parts[i].bytes_moved for i in running),
            launches=len(running),
            peak_memory_bytes=sum(parts[i].result_bytes for i in folded) + _peak_activation_bytes(graph, parts),
            load_time_flops=sum(parts[i].flops for i, n in graph.nodes.items() if n.constant),
        )


def _is_read(graph: Graph, constant: int) -> bool:
    """By a node that runs: then it is in memory after constant expressions have been folded."""
    return constant in graph.output_nodes or any(c in graph.position for c in graph.consumers[constant])


def _peak_activation_bytes(graph: Graph, parts: Mapping[int, NodeWork]) -> int:
    """Each activation lives from its computation to its last reader."""
    last_reader: dict[int, int] = {}
    for identifier in graph.order:
        for source in graph.nodes[identifier].sources:
            last_reader[source] = identifier
    dying: dict[int, int] = {}
    for identifier, reader in last_reader.items():
        if not graph.nodes[identifier].constant and identifier not in graph.output_nodes:
            dying[reader] = dying.get(reader, 0) + parts[identifier].result_bytes
    alive = peak = sum(parts[i].result_bytes for i in graph.inputs)
    for identifier in graph.order:
        alive += parts[identifier].result_bytes
        peak = max(peak, alive)
        alive -= dying.get(identifier, 0)
    return peak
