"""Carrying out a match: the graph with the source replaced by the target."""

from __future__ import annotations

from rlflow.ir.graph import Graph, Node, Ref
from rlflow.rules.match import Match, PlannedNode


def apply(graph: Graph, match: Match) -> Graph:
    """A new graph that shares all other nodes. The match must have been found in this very graph.

    A planned node that the graph has already is not made again: what two rewrites ask for alike is computed once, and
    who reads it is told apart no more. The target's outputs take the names of the source's.
    """
    names = {t: graph.nodes[r.node].names[r.index] for r, t in zip(match.roots, match.targets, strict=True)}
    roots = {root.node for root in match.roots}
    added: dict[int, Node] = {}
    places: list[int] = []

    def placed(ref: Ref) -> Ref:
        return Ref(places[-1 - ref.node], ref.index) if ref.node < 0 else ref

    for place, planned in enumerate(match.plan):
        inputs = tuple(map(placed, planned.inputs))
        identifier = _present(graph, planned, inputs, roots)
        if identifier is None:
            identifier = graph.next_id + len(added)
            outputs = (Ref(-1 - place, i) for i in range(len(planned.types)))
            added[identifier] = _node(planned, inputs, tuple(names.get(output, "") for output in outputs))
        places.append(identifier)
    return graph.replace(added, {root: placed(target) for root, target in zip(match.roots, match.targets, strict=True)})


def _present(graph: Graph, planned: PlannedNode, inputs: tuple[Ref, ...], roots: set[int]) -> int | None:
    """The node of the graph, other than those to be replaced, that computes what is planned."""
    readers = graph.consumers.get(inputs[0].node, ()) if inputs else ()
    for reader in readers:
        node = graph.nodes[reader]
        if node.op == planned.op and node.inputs == inputs and reader not in roots:
            if node.attributes == planned.attributes and node.types == planned.types:
                return reader
    return None


def _node(planned: PlannedNode, inputs: tuple[Ref, ...], names: tuple[str, ...]) -> Node:
    return Node(
        op=planned.op,
        inputs=inputs,
        attributes=planned.attributes,
        types=planned.types,
        names=names,
        constant=planned.constant,
    )
