"""Carrying out a match: the graph with the source replaced by the target."""

from __future__ import annotations

from rlflow.ir.graph import Graph
from rlflow.ir.node import Node, Ref
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.replacement import Operand, PlannedNode


def apply(graph: Graph, match: Match) -> Graph:
    """A new graph that shares all other nodes. The match must have been found in this very graph.

    A planned node that the graph has already is not made again: what two rewrites ask for alike is computed once, and
    who reads it is told apart no more. The target's outputs take the names of the source's.
    """
    names = {t: graph.nodes[r.node].names[r.index] for r, t in zip(match.roots, match.replacement.outputs, strict=True)}
    roots = {root.node for root in match.roots}
    added: dict[int, Node] = {}
    places: list[int] = []

    def placed(operand: Operand) -> Ref:
        return match.bindings[operand] if isinstance(operand, str) else Ref(places[operand.node], operand.index)

    for number, planned in enumerate(match.replacement.nodes):
        inputs = tuple(map(placed, planned.inputs))
        identifier = _present(graph, planned, inputs, roots)
        if identifier is None:
            identifier = graph.next_id + len(added)
            made = (Ref(number, i) for i in range(len(planned.types)))
            added[identifier] = _node(planned, inputs, tuple(names.get(output, "") for output in made))
        places.append(identifier)
    outputs = map(placed, match.replacement.outputs)
    return graph.replace(added, dict(zip(match.roots, outputs, strict=True)))


def _present(graph: Graph, planned: PlannedNode, inputs: tuple[Ref, ...], roots: set[int]) -> int | None:
    """The node of the graph, other than those to be replaced, that computes what is planned; of several the first in
    the graph's order, as that of the readers tells of the history.
    """
    alike = []
    for reader in graph.consumers.get(inputs[0].node, ()) if inputs else ():
        node = graph.nodes[reader]
        if node.op == planned.op and node.inputs == inputs and reader not in roots:
            if node.attributes == planned.attributes and node.types == planned.types:
                alike.append(reader)
    return min(alike, key=graph.positions().__getitem__) if len(alike) > 1 else next(iter(alike), None)


def _node(planned: PlannedNode, inputs: tuple[Ref, ...], names: tuple[str, ...]) -> Node:
    return Node(
        op=planned.op,
        inputs=inputs,
        attributes=planned.attributes,
        types=planned.types,
        names=names,
        constant=planned.constant,
    )
