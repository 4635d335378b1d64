"""The countable part of a cost: operations, bytes, launches. No clock is involved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from rlflow.ir.graph import Graph
from rlflow.ir.node import INPUT, Node
from rlflow.ops import registry

_MAX_REMEMBERED = 200_000


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a whole graph, in the units of `Cost`."""

    flops: int
    bytes_moved: int
    launches: int
    load_time_flops: int


@dataclass(frozen=True, slots=True)
class NodeWork:
    """One execution of one node."""

    flops: int
    bytes_moved: int


@dataclass(frozen=True, slots=True)
class _Sums:
    """The part of the work that adds up over nodes."""

    flops: int = 0
    bytes_moved: int = 0
    load_time_flops: int = 0


class WorkCounter:
    """Counts the work of graphs that share most of their nodes: only what an edit changed is counted again."""

    def __init__(self) -> None:
        self._by_node: dict[Node, NodeWork] = {}
        self._sums: WeakKeyDictionary[Graph, _Sums] = WeakKeyDictionary()

    def node(self, graph: Graph, identifier: int) -> NodeWork:
        node = graph.nodes[identifier]
        work = self._by_node.get(node)
        if work is None:
            operands = [graph.type_of(ref) for ref in node.inputs if ref is not None]
            work = NodeWork(registry.flops(node, operands), registry.bytes_moved(node, operands))
            if len(self._by_node) >= _MAX_REMEMBERED:
                self._by_node.clear()
            self._by_node[node] = work
        return work

    def graph(self, graph: Graph) -> Work:
        sums = self._sums.get(graph)
        if sums is None:
            sums = self._sums[graph] = self._counted(graph)
        return Work(
            flops=sums.flops,
            bytes_moved=sums.bytes_moved,
            launches=len(graph.order),
            load_time_flops=sums.load_time_flops,
        )

    def _counted(self, graph: Graph) -> _Sums:
        parent = graph.edit.parent() if graph.edit else None
        before = self._sums.get(parent) if parent is not None else None
        if parent is None or before is None or graph.edit is None or graph.outputs != parent.outputs:
            return self._sum(graph, graph.nodes)
        change = graph.edit.change
        gone = self._sum(parent, [i for i in (*change.touched, *change.removed) if i in parent.nodes])
        come = self._sum(graph, change.touched.union(change.added))
        return _Sums(
            before.flops - gone.flops + come.flops,
            before.bytes_moved - gone.bytes_moved + come.bytes_moved,
            before.load_time_flops - gone.load_time_flops + come.load_time_flops,
        )

    def _sum(self, graph: Graph, identifiers: Iterable[int]) -> _Sums:
        flops = bytes_moved = load_time_flops = 0
        for identifier in identifiers:
            node, work = graph.nodes[identifier], self.node(graph, identifier)
            if node.constant:
                load_time_flops += work.flops
            elif node.op != INPUT:
                flops += work.flops
                bytes_moved += work.bytes_moved
        return _Sums(flops, bytes_moved, load_time_flops)
