"""Twins: applications that are equal and differ in nothing but constants, of which one is enough.

Where merging x v and x w into x [v w] and parting them again has given x v once more, but as the product with a slice
of [v w], the two take the same time, and whatever can be done with one can be done with the other. Rules are not used
on constants, so that nothing says v and that slice were the same; left alone, such products would be merged with each
other without end.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from rlflow.egraph.model_egraph import ClassId, ENodeId, ModelEGraph


def filter_twins(egraph: ModelEGraph, changed: Iterable[ClassId]) -> None:
    """Filter the twins among the members of these classes: of each set, the one that was added first stays."""
    for value in changed:
        if egraph.is_constant(value):
            continue
        first: dict[Hashable, ENodeId] = {}
        for member in tuple(egraph.members(value)):
            twin = first.setdefault(_but_for_constants(egraph, member), member)
            if twin != member:
                egraph.filter(egraph.application(member), egraph.application(twin))


def _but_for_constants(egraph: ModelEGraph, member: ENodeId) -> Hashable:
    """Return what twins have in common, and the e-node alone if it can have none."""
    node, _, children = egraph.node(member)
    if node.is_opaque or not any(map(egraph.is_constant, children)):
        return member
    outputs = tuple(map(egraph.find, egraph.outputs_of(egraph.application(member))))
    operands = tuple(str(egraph.type_of(c)) if egraph.is_constant(c) else c for c in children)
    return node.signature, operands, outputs
