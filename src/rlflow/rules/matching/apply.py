"""The edit by which a match is applied: a rule's source replaced by its target."""

from __future__ import annotations

from rlflow.ir.graph import Graph
from rlflow.ir.node import Node, Ref
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.replacement import Operand, PlannedNode


def edit_of(graph: Graph, match: Match) -> tuple[dict[int, Node], dict[Ref, Ref]]:
    """Return the nodes that the match adds, and what is read in place of each of its roots, as `Graph.replace` takes it.

    A planned node that the graph already has is not made again, so that what two rewrites both need is computed once.
    The target's outputs take the names of the source's.
    """
    replaced = list(zip(match.roots, match.replacement.outputs, strict=True))
    names = {output: graph.nodes[root.node].names[root.index] for root, output in replaced}
    roots = {root.node for root in match.roots}

    added: dict[int, Node] = {}
    places: list[int] = []

    # Planned nodes come operands first, so that `places` already has those that a node reads.
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
    return added, dict(zip(match.roots, outputs, strict=True))


def _present(graph: Graph, planned: PlannedNode, inputs: tuple[Ref, ...], roots: set[int]) -> int | None:
    """Return the node of the graph, none of those to be replaced, that computes what is planned; None if there is none.

    Of several it is the first in the graph's order: the order of consumers would depend on the history of edits.
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
