"""Places in a graph: the last change, and what a match has around it.

Rewrites that make each other possible lie close together. In x -> Square -> ReduceMean -> Gather, moving the Gather
before the ReduceMean is what lets it move before the Square: the second match takes the Gather that the first rewrite
added.

The invariant: two matches of one rule with equal surroundings have equal neighbourhoods up to the given distance, but
for the contents of their weights and for what of it is read twice.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

from rlflow.ir.graph import Graph
from rlflow.ir.node import WEIGHT, Node
from rlflow.method import State
from rlflow.rules.matching.match import Match


def touches_last_change(state: State) -> Callable[[Match], bool]:
    """Return a test for matches of the state's graph that touch what the last rewrite made.

    Such a match takes, or binds to a variable, a node that the rewrite added or whose operands it changed. Before the
    first rewrite there are none.
    """
    changed = _changed_nodes(state)

    def touches(match: Match) -> bool:
        return not changed.isdisjoint(match.nodes) or any(ref.node in changed for ref in match.bindings.values())

    return touches


def _changed_nodes(state: State) -> frozenset[int]:
    edit = state.graph.edit
    if state.parent is None or edit is None:
        return frozenset()
    before, after = state.parent.graph.nodes, state.graph.nodes
    # A node that only got other readers is touched, too, but is the same object as before.
    rewired = (i for i in edit.change.touched if after[i] is not before.get(i))
    return frozenset((*edit.change.added, *rewired))


Surroundings = tuple[str | int, ...]


def surroundings_in(graph: Graph, distance: int) -> Callable[[Match], Surroundings]:
    """Return a function that gives a key of a match's rule and surroundings in this graph."""
    colours = colours_in(graph, distance)

    def of(match: Match) -> Surroundings:
        bound = (number for ref in match.bindings.values() for number in (colours[ref.node], ref.index))
        return (match.rule.id, *(colours[node] for node in match.nodes), *bound)

    return of


def colours_in(graph: Graph, distance: int) -> Mapping[int, int]:
    """Return a colour of each node, which nodes with the same up to this distance around them share.

    Weisfeiler and Leman's refinement (1968): in each of `distance` rounds a node's colour becomes that of itself, its
    operands and its readers.
    """
    colours = {identifier: _colour(node) for identifier, node in graph.nodes.items()}
    for _ in range(distance):
        colours = {identifier: _refined(graph, identifier, colours) for identifier in graph.nodes}
    return colours


def _colour(node: Node) -> int:
    """Return the colour of a node by itself; weights of several elements are alike if their types are."""
    (first, *_) = node.types or (None,)
    if node.op == WEIGHT and first is not None and not (first.is_static and first.elements == 1):
        return zlib.crc32(str(first).encode())
    return node.signature


def _refined(graph: Graph, identifier: int, colours: Mapping[int, int]) -> int:
    operands = tuple(0 if r is None else hash((colours[r.node], r.index)) for r in graph.nodes[identifier].inputs)
    readers = sorted(colours[reader] for reader in graph.consumers[identifier])
    return hash((colours[identifier], operands, tuple(readers), identifier in graph.output_nodes))
