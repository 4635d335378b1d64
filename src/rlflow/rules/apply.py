"""Carrying out a match: the graph with the source replaced by the target."""

from __future__ import annotations

from rlflow.ir.graph import Graph, Node, Ref
from rlflow.rules.match import Match, PlannedNode


def apply(graph: Graph, match: Match) -> Graph:
    """A new graph that shares all other nodes. The match must have been found in this very graph.

    The target's outputs take the names of the source's.
    """
    names = {t: graph.nodes[r.node].names[r.index] for r, t in zip(match.roots, match.targets, strict=True)}
    identifiers = range(graph.next_id, graph.next_id + len(match.plan))
    added = {
        identifier: _node(planned, place, graph.next_id, names)
        for place, (identifier, planned) in enumerate(zip(identifiers, match.plan, strict=True))
    }
    substitution = {
        root: _placed(target, graph.next_id) for root, target in zip(match.roots, match.targets, strict=True)
    }
    return graph.replace(added, substitution)


def _placed(ref: Ref, start: int) -> Ref:
    return Ref(start - 1 - ref.node, ref.index) if ref.node < 0 else ref


def _node(planned: PlannedNode, place: int, start: int, names: dict[Ref, str]) -> Node:
    return Node(
        op=planned.op,
        inputs=tuple(_placed(r, start) for r in planned.inputs),
        attributes=planned.attributes,
        types=planned.types,
        names=tuple(names.get(Ref(-1 - place, i), "") for i in range(len(planned.types))),
        constant=planned.constant,
    )
