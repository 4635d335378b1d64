"""The order in which an ONNX program is written: as its outputs need it, and not as a pass happened to leave it.

    in_order(model.graph)

Two ways to the same program differ in the order of its nodes, and passes follow that order: which of two equal nodes
stays, which of two fusions comes first. An environment whose states are programs must not see that.

Invariant: the order follows from the outputs, their order and that of operands alone, but for nodes and weights that
nobody needs, which come last and stay among themselves as they were. What is computed is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, NodeProto

from rlflow.onnx_io.node_proto import captured_names


def in_order(graph: GraphProto) -> None:
    """Sort nodes, weights and declared types of an acyclic graph in place; graphs inside of nodes stay as they are."""
    rank = {place: rank for rank, place in enumerate(_as_needed(graph))}
    rank_of = {name: rank[place] for place, node in enumerate(graph.node) for name in node.output if name}
    graph.node.sort(key=lambda node: min((rank_of[name] for name in node.output if name), default=len(rank)))
    graph.value_info.sort(key=lambda value: rank_of.get(value.name, len(rank)))

    first_read: dict[str, int] = {}
    for node in graph.node:
        for name in _read(node):
            first_read.setdefault(name, len(first_read))
    graph.initializer.sort(key=lambda tensor: first_read.get(tensor.name, len(first_read)))


def _as_needed(graph: GraphProto) -> Iterator[int]:
    """Yield each node's place after those of its operands, beginning with what the first output needs."""
    maker = {name: place for place, node in enumerate(graph.node) for name in node.output if name}
    needed = [maker[output.name] for output in graph.output if output.name in maker]
    done = set[int]()
    for place in (*needed, *range(len(graph.node))):
        yield from _needed_by(place, graph, maker, done)


def _needed_by(place: int, graph: GraphProto, maker: Mapping[str, int], done: set[int]) -> Iterator[int]:
    """Yield what a node needs and nobody before it did, and the node; enter them in `done`."""
    waiting = [place]  # on a stack of our own, since a deep network would exceed Python's
    while waiting:
        at = waiting[-1]
        made = (maker[name] for name in _read(graph.node[at]) if name in maker)
        missing = [operand for operand in made if operand not in done]
        if missing:
            waiting.extend(reversed(missing))
            continue
        waiting.pop()
        if at not in done:
            done.add(at)
            yield at


def _read(node: NodeProto) -> list[str]:
    return [name for name in (*node.input, *captured_names(node)) if name]
