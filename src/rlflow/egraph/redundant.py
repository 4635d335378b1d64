"""Redundant applications: those that are equal to another and differ from it in constants alone.

Merge x v and x w into x [v w], then split again: this gives x v a second time, as the product of x with a slice of
[v w]. Both products cost the same and admit the same rewrites. No rule is used on constants, so nothing shows that v
and that slice are equal; if both products stayed, they would be merged with each other without end.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from rlflow.egraph.egraph import ClassId, ENodeId
from rlflow.egraph.model_egraph import ModelEGraph


def filter_redundant(egraph: ModelEGraph, changed: Iterable[ClassId]) -> None:
    """Filter the redundant members of these classes; the one that was added first stays."""
    for value in changed:
        if egraph.is_constant(value):
            continue
        first: dict[Hashable, ENodeId] = {}
        for member in tuple(egraph.members(value)):
            same = first.setdefault(_but_for_constants(egraph, member), member)
            if same != member:
                egraph.filter(egraph.application(member), egraph.application(same))


def _but_for_constants(egraph: ModelEGraph, member: ENodeId) -> Hashable:
    """Return a key that redundant e-nodes have in common; the e-node itself if it reads no constant."""
    node, _, children = egraph.node(member)
    if node.is_opaque or not any(map(egraph.is_constant, children)):
        return member
    outputs = tuple(map(egraph.find, egraph.outputs_of(egraph.application(member))))
    operands = tuple(str(egraph.type_of(c)) if egraph.is_constant(c) else c for c in children)
    return node.signature, operands, outputs
