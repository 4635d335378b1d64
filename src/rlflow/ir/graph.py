"""The computation graph: immutable, so that a search may keep thousands, and cheap to edit, so that it may make them.

A graph is a map from node ids to nodes; a node names its operands by `Ref`. An edit replaces a handful of entries:

    child = graph.replace({graph.next_id: Node("Relu", ...)}, {Ref(7): Ref(graph.next_id)})

adds a node, lets every reader of node 7 read the new one, and drops node 7 if nobody needs it any more. The maps are
persistent, so that parent and child share every untouched node and nearly all of the maps. Weights are leaf nodes that
refer to their data and never hold a copy.

Invariants (`rlflow.ir.validate` checks them): `consumers` is the exact inverse of the operands; every node reaches an
output or is an input; ids are never used again; a substitute has the type of what it replaces.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from immutables import Map

from rlflow.errors import GraphError
from rlflow.ir.depth_first import CycleError, DepthFirst, Pieces, depth_first
from rlflow.ir.depth_first import updated as updated_order
from rlflow.ir.layout import Layout, layout
from rlflow.ir.layout import updated as updated_layout
from rlflow.ir.node import INPUT, Node, Ref
from rlflow.ir.tensor_type import TensorType


@dataclass(frozen=True, eq=False)
class Header:
    """Everything that a model states beside its computation.

    `opset` is the version of ai.onnx that it imports, and `domains` holds the versions of its other domains, without
    those in which the model defines functions itself. `proto` belongs to the ONNX boundary. `working_set_mb` are the
    megabytes that a run of the model touches, None where that is not known: no rewrite changes what it says.
    """

    opset: int
    proto: object = None
    domains: Mapping[str, int] = field(default_factory=dict)
    working_set_mb: float | None = None

    def offers(self, versions: Mapping[str, int]) -> bool:
        """Return True if the model imports these domains ("" is ai.onnx), each in this version or a later one."""
        for domain, version in versions.items():
            if (self.domains.get(domain, 0) if domain else self.opset) < version:
                return False
        return True


@dataclass(frozen=True)
class Change:
    """The nodes that an edit concerned.

    `touched` ones are alive and got other operands or other consumers, or a value of theirs was replaced, if anybody
    read it or not, or the graph's outputs are others of theirs.
    """

    added: tuple[int, ...]
    removed: tuple[int, ...]
    touched: frozenset[int]


@dataclass(frozen=True, eq=False)
class Edit:
    """The parent of a graph and the change that led from it, for results that are updated instead of computed anew.

    The reference is weak, so that a graph never keeps its ancestors alive.
    """

    parent: weakref.ref[Graph]
    change: Change


@dataclass(frozen=True, eq=False)
class Graph:
    """A model as a graph: `inputs` are ids of `Input` nodes, `consumers` lists the readers of each node, each once."""

    nodes: Map[int, Node]
    inputs: tuple[int, ...]
    outputs: tuple[Ref, ...]
    output_names: tuple[str, ...]
    consumers: Map[int, tuple[int, ...]]
    header: Header
    next_id: int
    edit: Edit | None = None

    def type_of(self, ref: Ref) -> TensorType | None:
        return self.nodes[ref.node].types[ref.index]

    @cached_property
    def output_nodes(self) -> frozenset[int]:
        return frozenset(ref.node for ref in self.outputs)

    @property
    def order(self) -> tuple[int, ...]:
        """The nodes that run, operands first: depth first from the outputs, operands from left to right.

        The order depends on the structure alone, never on names or on the history of edits. Leaves and constant
        expressions do not run and are left out. Raises `GraphError` on a cycle.
        """
        return self._depth_first.nodes

    def positions(self) -> Sequence[int]:
        """Return the place of each node id in `order`, -1 for nodes that do not run."""
        return self._depth_first.places.data

    def places(self) -> np.ndarray:
        """Return (next_id,) int32: the place of each node id in the inputs followed by `order`, or else below 0."""
        places = self._depth_first.places + np.int32(len(self.inputs))
        places[list(self.inputs)] = np.arange(len(self.inputs))
        return places

    @property
    def pieces(self) -> Pieces:
        """The parts of `order` by their origin in the parent's order; empty if it was not updated from there."""
        return self._depth_first.pieces

    @cached_property
    def layout(self) -> Layout:
        """The graph as arrays along its order, updated from the parent's if that has been computed."""
        parent = self.edit.parent() if self.edit else None
        if self.pieces and parent is not None and "layout" in vars(parent):
            return updated_layout(parent.layout, self.nodes, self.pieces)
        return layout(self.nodes, self.order)

    @cached_property
    def _depth_first(self) -> DepthFirst:
        """The order with its index, updated from the parent's if that has been computed."""
        roots = [ref.node for ref in self.outputs if self._runs(ref.node)]
        parent = self.edit.parent() if self.edit else None
        try:
            if self.edit is None or parent is None or "_depth_first" not in vars(parent):
                return depth_first(roots, self._running_operands, self.next_id)

            # Nodes that only got other consumers keep their operands, and with them their places.
            change = self.edit.change
            changed = [i for i in change.touched if self.nodes[i] is not parent.nodes.get(i)]
            before = parent._depth_first
            return updated_order(before, changed, change.removed, roots, self._running_operands, self.next_id)
        except CycleError as error:
            op = self.nodes[error.node].op
            raise GraphError(f"the graph has a cycle through node {error.node} ({op})") from None

    def forget(self) -> None:
        """Drop what was derived from the structure and takes as much room as the graph; it is derived again if need be.

        A way of thousands of rewrites keeps all of its graphs, which share all else.
        """
        for name in ("_depth_first", "layout"):
            vars(self).pop(name, None)

    def _runs(self, identifier: int) -> bool:
        node = self.nodes[identifier]
        return not node.constant and node.op != INPUT

    def _running_operands(self, identifier: int) -> list[int]:
        return [source for source in self.nodes[identifier].sources if self._runs(source)]

    def replace(self, added: Mapping[int, Node], substitution: Mapping[Ref, Ref]) -> Graph:
        """Add nodes, let every reader of an old value read its substitute, and drop nodes that nobody reads any more.

        `added` must be numbered from `next_id` on, operands first. Types are kept: a substitute must have the type of
        the value that it replaces. No new node may read a value that is being replaced. Raises `GraphError` for a
        number or a type that does not fit.
        """
        draft = _Draft(self)
        if added and min(added) < self.next_id:
            raise GraphError(f"new nodes are numbered from {self.next_id} on, not {min(added)}")
        for identifier, node in added.items():
            draft.add(identifier, node)

        for old, new in substitution.items():
            if draft.nodes[new.node].types[new.index] != self.type_of(old):
                raise GraphError(
                    f"a value of type {self.type_of(old)} ({self.nodes[old.node].names[old.index]!r}) cannot be "
                    f"replaced by one of type {draft.nodes[new.node].types[new.index]}"
                )
            draft.redirect(old, new)

        outputs = tuple(substitution.get(ref, ref) for ref in self.outputs)
        for old, new in substitution.items():
            if old in self.outputs:
                draft.touched.update((old.node, new.node))
        removed = draft.sweep({ref.node for ref in substitution}, {ref.node for ref in outputs})
        touched = frozenset(i for i in draft.touched if i in draft.nodes)
        change = Change(tuple(i for i in added if i in draft.nodes), tuple(removed), touched)

        return Graph(
            nodes=draft.nodes.finish(),
            inputs=self.inputs,
            outputs=outputs,
            output_names=self.output_names,
            consumers=draft.consumers.finish(),
            header=self.header,
            next_id=max(self.next_id, *(i + 1 for i in added)) if added else self.next_id,
            edit=Edit(weakref.ref(self), change),
        )


class _Draft:
    """The mutable maps of a graph during one `replace`."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = graph.nodes.mutate()
        self.consumers = graph.consumers.mutate()
        self.inputs = graph.inputs
        self.fresh: set[int] = set()
        self.touched: set[int] = set()

    def add(self, identifier: int, node: Node) -> None:
        self.nodes[identifier] = node
        self.consumers[identifier] = ()
        self.fresh.add(identifier)
        self.touched.add(identifier)
        for source in node.sources:
            self.consumers[source] = (*self.consumers[source], identifier)
            self.touched.add(source)

    def redirect(self, old: Ref, new: Ref) -> None:
        """Let every reader of `old` read `new`, except nodes that were added in this edit."""
        self.touched.add(old.node)
        for reader in self.consumers[old.node]:
            node = self.nodes[reader]
            if reader in self.fresh or old not in node.inputs:
                continue
            self.nodes[reader] = changed = node.with_inputs(tuple(new if r == old else r for r in node.inputs))
            self.touched.update((reader, new.node))

            # A reader of another output of the old node remains its consumer.
            if old.node not in changed.sources:
                self._forget(old.node, reader)
            if reader not in self.consumers[new.node]:
                self.consumers[new.node] = (*self.consumers[new.node], reader)

    def sweep(self, candidates: Iterable[int], outputs: set[int]) -> list[int]:
        """Remove the candidates that nobody reads, then their operands if these become unread; return them all."""
        removed = []
        # Added nodes are candidates, too, if nothing reads them.
        stack = sorted(candidates) + sorted(self.fresh)
        while stack:
            identifier = stack.pop()
            node = self.nodes.get(identifier)
            if node is None or self.consumers[identifier] or identifier in outputs or node.op == INPUT:
                continue
            del self.nodes[identifier], self.consumers[identifier]
            removed.append(identifier)
            for source in node.sources:
                self._forget(source, identifier)
                stack.append(source)
        return removed

    def _forget(self, source: int, reader: int) -> None:
        self.consumers[source] = tuple(c for c in self.consumers[source] if c != reader)
        self.touched.add(source)


def make_graph(
    nodes: Mapping[int, Node],
    inputs: Sequence[int],
    outputs: Sequence[Ref],
    output_names: Sequence[str],
    header: Header,
) -> Graph:
    """Make a graph from its nodes; nodes that lead to no output are left out, but for inputs."""
    # Inputs stay although nothing may read them: they belong to the interface.
    alive: set[int] = set(inputs)
    stack = [ref.node for ref in outputs]
    while stack:
        identifier = stack.pop()
        if identifier not in alive or identifier in inputs:
            alive.add(identifier)
            stack.extend(s for s in nodes[identifier].sources if s not in alive)

    kept = {i: node for i, node in nodes.items() if i in alive}
    readers: dict[int, list[int]] = {i: [] for i in kept}
    for identifier, node in kept.items():
        for source in node.sources:
            readers[source].append(identifier)

    return Graph(
        nodes=Map(kept),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        output_names=tuple(output_names),
        consumers=Map({i: tuple(r) for i, r in readers.items()}),
        header=header,
        next_id=max(nodes, default=-1) + 1,
    )
