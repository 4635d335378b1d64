"""The small graph around an edit: what goes, what comes, and what is wired to these, before the edit and after it.

Replacing Relu in   x -> MatMul -> Relu -> Softmax -> y   by Tanh gives, at a reach of 1,

    roles     Relu REMOVED, Tanh ADDED, MatMul and Softmax NEAR
    before    MatMul -> Relu -> Softmax
    after     MatMul -> Tanh -> Softmax

Nodes that run are met by walking from the changed ones: to what they read, and to their readers, of which many are not
followed (a mask is read in every layer). So nothing far away decides what the small graph is.

The invariant: removed nodes are gone after the edit and added ones are there, all others are the same on both sides,
and each side has exactly the edges that the graph has between its nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.node import Node
from rlflow.ir.preview import Preview, runs

REMOVED, ADDED, NEAR, FAR = range(4)
"""The roles of nodes: what an edit removes and adds, what is next to these or touched, and what is beyond."""

_MAX_REMEMBERED = 200_000

Edges = tuple[tuple[int, int], ...]
"""Senders and receivers by their places in a list of nodes."""


class EditGraph(NamedTuple):
    """The nodes around an edit by their ids, of each the role, the edges of both sides, and readers left out.

    `outside_readers` counts for each node the readers, before the edit, that are not among the nodes.
    """

    nodes: tuple[int, ...]
    roles: tuple[int, ...]
    before: Edges
    after: Edges
    outside_readers: tuple[int, ...]


class EditGraphs:
    """Draws the small graphs around edits.

    They go `reach` steps far; readers of a node that has more than `max_readers` are not followed, unless the edit
    touches them. `InputError` if one of the two is less than 1.
    """

    def __init__(self, reach: int, max_readers: int) -> None:
        for name, value in (("reach", reach), ("max_readers", max_readers)):
            if value < 1:
                raise InputError(f"tokens of matches: {name} must be at least 1, not {value}")
        self._reach, self._max_readers = reach, max_readers
        self._sources: dict[Node, tuple[int, ...]] = {}

    def around(self, graph: Graph, edit: Preview) -> EditGraph:
        """Return the small graph around an edit of a graph."""
        roles = dict.fromkeys(_removed(graph, edit), REMOVED)
        roles.update((i, ADDED) for i, node in edit.added.items() if i not in edit.idle and runs(node))
        frontier = list(roles)
        for hop in range(self._reach):
            met = [near for identifier in frontier for near in self._neighbours(graph, edit, identifier)]
            if hop == 0:
                met.extend(sorted(edit.touched))
            frontier = [i for i in dict.fromkeys(met) if i not in roles]
            roles.update(dict.fromkeys(frontier, NEAR if hop == 0 else FAR))
        return self._wired(graph, edit, roles)

    def _neighbours(self, graph: Graph, edit: Preview, identifier: int) -> tuple[int, ...]:
        """The running nodes that a node reads and, unless there are many, those that read it."""
        node = edit.added.get(identifier)
        if node is not None:
            return tuple(i for i in node.sources if i not in edit.added and runs(graph.nodes[i]))
        readers = tuple(i for i in graph.consumers[identifier] if runs(graph.nodes[i]))
        sources = self._running_sources(graph, graph.nodes[identifier])
        return (*sources, *readers) if len(readers) <= self._max_readers else sources

    def _running_sources(self, graph: Graph, node: Node) -> tuple[int, ...]:
        known = self._sources.get(node)
        if known is None:
            if len(self._sources) >= _MAX_REMEMBERED:
                self._sources.clear()
            known = self._sources[node] = tuple(i for i in node.sources if runs(graph.nodes[i]))
        return known

    def _wired(self, graph: Graph, edit: Preview, roles: dict[int, int]) -> EditGraph:
        """Add the edges to the nodes, whose ids are given with their roles."""
        nodes, consumers = graph.nodes, graph.consumers
        place = {identifier: number for number, identifier in enumerate(roles)}
        before: list[tuple[int, int]] = []
        after: list[tuple[int, int]] = []
        for (identifier, number), role in zip(place.items(), roles.values(), strict=True):
            if role == ADDED:
                after += [(place[i], number) for i in edit.added[identifier].sources if i in place]
                continue
            node = nodes[identifier]
            edges = [(place[i], number) for i in self._running_sources(graph, node) if i in place]
            before += edges
            if identifier in edit.readers:
                after += [(place[i], number) for i in _sources_after(node, edit) if i in place]
            elif role != REMOVED:
                after += edges
        outside = [0 if role == ADDED else len(consumers[identifier]) for identifier, role in roles.items()]
        for sender, _ in before:
            outside[sender] -= 1
        return EditGraph(tuple(place), tuple(roles.values()), tuple(before), tuple(after), tuple(outside))


def _removed(graph: Graph, edit: Preview) -> Iterator[int]:
    """List the nodes that go, from those that are replaced on: each is one of these, or read only by others of them."""
    seen = set()
    waiting = [ref.node for ref in edit.substitution]
    for identifier in waiting:
        if identifier in edit.removed and identifier not in seen:
            seen.add(identifier)
            yield identifier
            waiting.extend(graph.nodes[identifier].sources)


def _sources_after(node: Node, edit: Preview) -> dict[int, None]:
    """Return the nodes that a node with other operands reads after the edit, each once."""
    return dict.fromkeys(edit.substitution.get(ref, ref).node for ref in node.inputs if ref is not None)
