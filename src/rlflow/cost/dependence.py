"""The nodes of a graph on which a rewrite depends, so that what is known of it holds until one of them changes.

A search goes from a graph to one after it, in which most matches live on. What was worked out for a match, such as the
change of the price by it, need not be looked at again if the nodes that it depends on are none of those `disturbed`:

    depends = {*nodes_that_the_price_depends_on, *read_by(graph, edit, match)}
    disturbed(child, cost_model).isdisjoint(depends)      # then it is the same in the child

The invariant: an edit of a match that lives on is another one only if a node that it read was disturbed.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TypeVar

from rlflow.cost.base import LocalCostModel, MeasuringCostModel
from rlflow.ir.graph import Graph
from rlflow.ir.preview import Preview
from rlflow.rules.matching.match import Match

EVERYWHERE = -1
"""The number of no node: stands for a dependence on the whole graph, and is disturbed by every edit."""

_MOST_EDITS = 64  # since a graph that is known

K = TypeVar("K")


def disturbed(graph: Graph, cost_model: LocalCostModel) -> Set[int]:
    """Return the nodes around which a graph or its price differs from its parent."""
    nodes = {EVERYWHERE, *cost_model.disturbed(graph)}
    if graph.edit is not None:
        nodes.update(graph.edit.change.removed, graph.edit.change.touched)
    return nodes


def last_known(
    graph: Graph, known: Callable[[Graph], K | None], cost_model: LocalCostModel
) -> tuple[K | None, Set[int]]:
    """Return what is known of the last graph before this one, and all nodes that were disturbed since then.

    One step rewrites many places that are alike, and nobody looks at the graphs on the way. A cost model that would
    have to measure them is not asked about these: then only what is known of the parent counts.
    """
    way: list[Graph] = []
    while len(way) < _MOST_EDITS and (parent := graph.edit.parent() if graph.edit else None) is not None:
        way.append(graph)
        if (found := known(parent)) is not None:
            return found, {node for edited in reversed(way) for node in disturbed(edited, cost_model)}
        if isinstance(cost_model, MeasuringCostModel):
            break
        graph = parent
    return None, frozenset()


def read_by(graph: Graph, edit: Preview, match: Match) -> set[int]:
    """Return the nodes, constants apart, on which it depends what the edit of a match is.

    If it found a node that it would have added otherwise, then perhaps among several, and it took the first in the
    graph's order, which is a matter of the whole graph. With constants it makes no difference if they are found.
    """
    bound = {ref.node for ref in match.bindings.values()}
    used = {source for node in edit.added.values() for source in node.sources}
    used.update(ref.node for ref in edit.substitution.values())
    used -= edit.added.keys()
    everywhere = (EVERYWHERE,) if _chose(graph, used - bound, bound) else ()
    varying = {i for i in bound | used if not graph.nodes[i].constant}
    return {*edit.removed, *edit.touched, *match.nodes, *varying, *everywhere}


def _chose(graph: Graph, found: set[int], bound: set[int]) -> bool:
    """Return True if there were several nodes to find, at one of these or at those that they read."""
    nodes = graph.nodes
    while found:
        identifier = found.pop()
        node = nodes[identifier]
        if node.constant:
            continue
        for reader in graph.consumers[node.sources[0]] if node.sources else ():
            other = nodes[reader]
            if reader != identifier and other.signature == node.signature and other.inputs == node.inputs:
                return True
        found.update(source for source in node.sources if source not in bound)
    return False
