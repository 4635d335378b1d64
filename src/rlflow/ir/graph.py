"""The computation graph: immutable, so that a search may keep thousands, and cheap to edit, so that it may
make them.

A graph is a map from node ids to nodes. Nodes name their operands by `Ref`; an edit copies the map and
replaces a handful of entries, so that parent and child share every untouched node. Weights are leaf nodes
that refer to their data and never hold a copy.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple, Protocol

import numpy as np

from rlflow.errors import GraphError
from rlflow.ir.tensor_type import TensorType

INPUT = "Input"
WEIGHT = "Weight"
LEAVES = frozenset({INPUT, WEIGHT})

AttributeValue = int | float | str | bytes | tuple["AttributeValue", ...]
Attributes = Mapping[str, AttributeValue]


class Ref(NamedTuple):
    """One output of one node."""

    node: int
    index: int = 0  # type: ignore[assignment]  # hides tuple.index, which nobody needs here


class Payload(Protocol):
    """What only the ONNX boundary understands: a weight's data or an opaque node's original text.

    `digest` identifies the content across processes.
    """

    @property
    def digest(self) -> str: ...


class WeightData(Payload, Protocol):
    """A weight's values, loaded when asked for."""

    def array(self) -> np.ndarray: ...


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One operator application, or a leaf (`Input`, `Weight`).

    `types` and `names` have one entry an output; a type of None is a value that is no tensor (a sequence, an
    optional) or of which nothing is known. Names are hints for export and never part of a graph's identity.
    `constant` says that the value is known when the model is loaded: it costs nothing at run time.
    `label` is the node's own name in the model that it came from, a hint as well.
    `signature` is a 64-bit digest of everything but the operands, names and label.
    """

    op: str
    inputs: tuple[Ref | None, ...]
    attributes: Attributes
    types: tuple[TensorType | None, ...]
    names: tuple[str, ...]
    constant: bool = False
    payload: Payload | None = None
    signature: int = 0
    sources: tuple[int, ...] = field(default=())
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", tuple(dict.fromkeys(r.node for r in self.inputs if r is not None)))
        if not self.signature:
            object.__setattr__(self, "signature", _signature(self))

    @property
    def is_opaque(self) -> bool:
        return self.payload is not None and self.op not in LEAVES

    def with_inputs(self, inputs: tuple[Ref | None, ...]) -> Node:
        return self._copy(inputs, self.names)

    def with_names(self, names: tuple[str, ...]) -> Node:
        return self._copy(self.inputs, names)

    def _copy(self, inputs: tuple[Ref | None, ...], names: tuple[str, ...]) -> Node:
        return Node(
            self.op,
            inputs,
            self.attributes,
            self.types,
            names,
            self.constant,
            self.payload,
            self.signature,
            label=self.label,
        )


def _signature(node: Node) -> int:
    content = (
        node.op,
        sorted(node.attributes.items()),
        tuple(str(t) for t in node.types),
        tuple(r is None for r in node.inputs),
        node.payload.digest if node.payload is not None else "",
    )
    return int.from_bytes(blake2b(repr(content).encode(), digest_size=8).digest(), "little") >> 3


@dataclass(frozen=True, eq=False)
class Header:
    """What a model says about itself beside its computation. `proto` belongs to the ONNX boundary.

    `opset` is its version of ai.onnx, `domains` has those of the other domains that it imports, but for domains that it
    defines functions in: what an operator means there is the model's affair.
    """

    opset: int
    proto: object = None
    domains: Mapping[str, int] = field(default_factory=dict)

    def offers(self, versions: Mapping[str, int]) -> bool:
        """Whether the model has these domains ("" is ai.onnx), each in this version or a later one."""
        for domain, version in versions.items():
            if (self.domains.get(domain, 0) if domain else self.opset) < version:
                return False
        return True


@dataclass(frozen=True)
class Change:
    """What an edit did to a graph: `touched` nodes are alive and got other operands or other consumers."""

    added: tuple[int, ...]
    removed: tuple[int, ...]
    touched: frozenset[int]


@dataclass(frozen=True, eq=False)
class Edit:
    """How a graph came out of another: for whoever keeps something about graphs and would rather update than redo it.

    The parent is referred to weakly, so that a graph never keeps its ancestors alive.
    """

    parent: weakref.ref[Graph]
    change: Change


@dataclass(frozen=True, eq=False)
class Graph:
    """A model. `inputs` are ids of `Input` nodes; `consumers` lists, for each node, the nodes that read it."""

    nodes: Mapping[int, Node]
    inputs: tuple[int, ...]
    outputs: tuple[Ref, ...]
    output_names: tuple[str, ...]
    consumers: Mapping[int, tuple[int, ...]]
    header: Header
    next_id: int
    edit: Edit | None = None

    def type_of(self, ref: Ref) -> TensorType | None:
        return self.nodes[ref.node].types[ref.index]

    @cached_property
    def output_nodes(self) -> frozenset[int]:
        return frozenset(ref.node for ref in self.outputs)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The nodes that run, operands first: depth first from the outputs, operands from left to right.

        It depends on the structure alone, never on names or on the history of edits. Leaves and constant
        expressions do not run and are left out. `GraphError` on a cycle.
        """
        nodes = self.nodes
        entered: set[int] = set()
        done: set[int] = set()
        order: list[int] = []
        stack = [ref.node for ref in reversed(self.outputs) if not nodes[ref.node].constant]
        while stack:
            current = stack.pop()
            if current < 0:  # all operands of ~current are done
                done.add(~current)
                order.append(~current)
            elif current not in entered:
                entered.add(current)
                node = nodes[current]
                if node.op != INPUT:
                    stack.append(~current)
                    stack.extend([s for s in reversed(node.sources) if s not in done and not nodes[s].constant])
            elif current not in done and nodes[current].op != INPUT:
                raise GraphError(f"the graph has a cycle through node {current} ({nodes[current].op})")
        return tuple(order)

    @cached_property
    def position(self) -> Mapping[int, int]:
        """Node id -> its place in `order`."""
        return dict(zip(self.order, range(len(self.order)), strict=True))

    def replace(self, added: Mapping[int, Node], substitution: Mapping[Ref, Ref]) -> Graph:
        """Add nodes, let every reader of an old value read its substitute, and drop what nobody reads any
        more.

        `added` must be numbered from `next_id` on. Types are kept: a substitute must have its value's type
        (`GraphError` otherwise). No new node may read a value that is being replaced.
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
        removed = draft.sweep({ref.node for ref in substitution}, {ref.node for ref in outputs})
        touched = frozenset(i for i in draft.touched if i in draft.nodes)
        change = Change(tuple(i for i in added if i in draft.nodes), tuple(removed), touched)
        return Graph(
            nodes=draft.nodes,
            inputs=self.inputs,
            outputs=outputs,
            output_names=self.output_names,
            consumers=draft.consumers,
            header=self.header,
            next_id=max(self.next_id, *(i + 1 for i in added)) if added else self.next_id,
            edit=Edit(weakref.ref(self), change),
        )


class _Draft:
    """The mutable copy inside one `replace`."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = dict(graph.nodes)
        self.consumers = dict(graph.consumers)
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
        for reader in self.consumers[old.node]:
            node = self.nodes[reader]
            if reader in self.fresh or old not in node.inputs:
                continue
            self.nodes[reader] = changed = node.with_inputs(tuple(new if r == old else r for r in node.inputs))
            self.touched.add(reader)
            if old.node not in changed.sources:
                self._forget(old.node, reader)
            if reader not in self.consumers[new.node]:
                self.consumers[new.node] = (*self.consumers[new.node], reader)
                self.touched.add(new.node)

    def sweep(self, candidates: Iterable[int], outputs: set[int]) -> list[int]:
        """Remove the candidates that nobody reads, and then their operands if these become unread."""
        removed = []
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
    """A graph from its nodes; nodes from which no output can be reached are left out (inputs are kept)."""
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
        nodes=kept,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        output_names=tuple(output_names),
        consumers={i: tuple(r) for i, r in readers.items()},
        header=header,
        next_id=max(nodes, default=-1) + 1,
    )
