"""A graph and the graphs after some rewrites of it as the arrays of one disjoint graph, in which what they share is
written once.

A rewrite changes a handful of nodes. After L rounds of message passing, a node that is further than L steps from these
is what it is in the current graph, to the bit. So a candidate is written as copies of the nodes that are near its
change, which also hear from nodes of the current graph at the border; nobody hears from a copy but other copies:

    current      x -> MatMul -> Relu -> Softmax -> y            nodes 0, 1, 2, 3
    candidate    x -> MatMul -> Tanh -> Softmax -> y            copies of MatMul, Tanh, Softmax; x is node 0
                                                                replaced: MatMul, Relu, Softmax of the current graph

The sum over the nodes of the candidate is that over the current graph, less the replaced ones, plus the copies.

The invariant: an encoder with `reach` rounds of message passing makes of this, up to rounding, what it makes of the
graphs one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.node import Node
from rlflow.ir.tensor_type import TensorType
from rlflow.representation.features import FEATURES
from rlflow.representation.own_features import COUNT_SCALE, OwnFeatures, columns, operands_of, todays_operators
from rlflow.representation.vocabulary import Vocabulary

_DIMENSIONS = 4
_LOG_SCALE = 1 / 16

EDGE_FEATURES = ("operand", *(f"log2_dimension_{place}_from_last" for place in range(_DIMENSIONS)))
"""What is told of an edge: the operand's number at the reader, and the shape of the tensor."""

_MAX_REMEMBERED = 200_000


def todays_candidate_vocabulary() -> Vocabulary:
    """Every operator that the library knows, and every feature of nodes and of edges."""
    return Vocabulary(todays_operators(), (*FEATURES, *EDGE_FEATURES))


@dataclass(frozen=True, eq=False)
class CandidateArrays:
    """One current graph and K candidates: M nodes, of which the first N are the current graph's, and E messages.

    - `look`, (M,) int32: the row of each node in `CandidateWriter.node_rows`.
    - `owner`, (M,) int32: whose node it is, 0 the current graph's and k + 1 that of candidate k.
    - `messages`, (E, 2) int32: who sends and who hears. Every edge between nodes is there in both directions.
    - `edge`, (E,) int32: the row of each message's edge in `CandidateWriter.edge_rows`.
    - `backward`, (E,) bool: the messages from a reader to what it reads.
    - `replaced`, (Q, 2) int32: k + 1, and a node of the current graph that candidate k lacks or has a copy of.
    """

    look: np.ndarray
    owner: np.ndarray
    messages: np.ndarray
    edge: np.ndarray
    backward: np.ndarray
    replaced: np.ndarray
    candidates: int

    @property
    def nbytes(self) -> int:
        """The memory that the arrays take."""
        parts = (self.look, self.owner, self.messages, self.edge, self.backward, self.replaced)
        return sum(array.nbytes for array in parts)


class _Rows:
    """Distinct rows of a table, numbered in the order in which they are met."""

    def __init__(self, selected: Sequence[int]) -> None:
        self._selected = list(selected)
        self._number: dict[tuple[float, ...], int] = {}
        self._table = np.zeros((0, len(self._selected)), np.float32)

    def number(self, row: tuple[float, ...]) -> int:
        return self._number.setdefault(row, len(self._number))

    def table(self) -> np.ndarray:
        if len(self._table) < len(self._number):
            self._table = np.array(list(self._number), np.float32)[:, self._selected]
        return self._table


class CandidateWriter:
    """Writes graphs with their candidates as arrays, in a vocabulary, for encoders of `reach` rounds.

    Equal nodes have one row and so have equal edges, whatever graph they are in: rows are what `node_rows` and
    `edge_rows` say. `InputError` for a reach below 1 or a feature that is no longer computed.
    """

    def __init__(self, vocabulary: Vocabulary | None = None, reach: int = 3) -> None:
        if reach < 1:
            raise InputError(f"arrays of candidates: the reach must be at least 1, not {reach}")
        self.vocabulary = vocabulary or todays_candidate_vocabulary()
        self.reach = reach
        node_features = [name for name in self.vocabulary.features if name not in EDGE_FEATURES]
        edge_features = [name for name in self.vocabulary.features if name in EDGE_FEATURES]
        of_nodes = columns(Vocabulary(self.vocabulary.operators, tuple(node_features)), FEATURES)
        of_edges = columns(Vocabulary(self.vocabulary.operators, tuple(edge_features)), EDGE_FEATURES)
        self.node_width, self.edge_width = 1 + len(of_nodes), len(of_edges)
        self._own = OwnFeatures(self.vocabulary)
        self._nodes = _Rows([0, *(1 + column for column in of_nodes)])
        self._edges = _Rows(of_edges)
        self._own_of: dict[Node, tuple[float, ...]] = {}
        self._edges_of: dict[Node, dict[int, int]] = {}

    def node_rows(self) -> np.ndarray:
        """(T, 1 + F) float32: the index of the operator and the features of nodes, by row."""
        return self._nodes.table()

    def edge_rows(self) -> np.ndarray:
        """(T', D) float32: the features of edges, by row."""
        return self._edges.table()

    def arrays(self, graph: Graph, candidates: Sequence[Graph]) -> CandidateArrays:
        """Write a graph, and graphs that one edit of it has given."""
        if len(self._own_of) >= _MAX_REMEMBERED:
            self._own_of.clear()
            self._edges_of.clear()
        draft = _Draft(self, graph)
        for candidate in candidates:
            draft.add(candidate, near_change(graph, candidate, self.reach))
        return draft.finish()

    def look(self, graph: Graph, identifier: int) -> int:
        """Return the row of a node."""
        node = graph.nodes[identifier]
        own = self._own_of.get(node)
        if own is None:
            own = self._own_of[node] = self._own.row(node, operands_of(node, graph.nodes.__getitem__))
        readers = COUNT_SCALE * len(graph.consumers[identifier])
        return self._nodes.number((*own, readers, float(identifier in graph.output_nodes)))

    def edges(self, graph: Graph, reader: int) -> Mapping[int, int]:
        """Return the row of the edge to the reader from each node that it reads at run time, by the ids of these."""
        node = graph.nodes[reader]
        known = self._edges_of.get(node)
        if known is None:
            known = {}
            for slot, ref in enumerate(node.inputs):
                if ref is not None and ref.node not in known and not graph.nodes[ref.node].constant:
                    known[ref.node] = self._edges.number((COUNT_SCALE * slot, *_shape(graph.type_of(ref))))
            self._edges_of[node] = known
        return known


def near_change(graph: Graph, candidate: Graph, reach: int) -> list[int]:
    """Return the nodes of a candidate that are within `reach` steps of what differs from the graph, in its order.

    `InputError` for a candidate that no edit of the graph has given.
    """
    if candidate.edit is None or candidate.edit.parent() is not graph:
        raise InputError("a candidate must come from one rewrite of the graph that it is written with")
    change = candidate.edit.change
    near = {i for i in (*change.added, *change.touched) if not candidate.nodes[i].constant}
    frontier = near
    for _ in range(reach):
        met = {i for known in frontier for i in neighbours(candidate, known)}
        frontier = met - near
        near = near | frontier
    places = candidate.places()
    return sorted(near, key=lambda i: int(places[i]))


def neighbours(graph: Graph, identifier: int) -> Iterable[int]:
    """Yield the nodes that a node reads at run time, and those that read it."""
    yield from (i for i in graph.nodes[identifier].sources if not graph.nodes[i].constant)
    yield from graph.consumers[identifier]


class _Draft:
    """The lists of the arrays, which grow by one candidate after the other."""

    def __init__(self, writer: CandidateWriter, graph: Graph) -> None:
        self._writer, self._graph = writer, graph
        self._place = {identifier: place for place, identifier in enumerate((*graph.inputs, *graph.order))}
        self._look = [writer.look(graph, identifier) for identifier in self._place]
        self._owner = [0] * len(self._place)
        self._messages: list[tuple[int, int]] = []
        self._edge: list[int] = []
        self._backward: list[bool] = []
        self._replaced: list[tuple[int, int]] = []
        self._candidates = 0
        self._hear(graph, self._place)

    def add(self, candidate: Graph, near: Sequence[int]) -> None:
        """Add copies of the nodes that are near the change of a candidate, and what they hear."""
        assert candidate.edit is not None
        self._candidates += 1
        number, begin = self._candidates, len(self._look)
        copies = {identifier: begin + place for place, identifier in enumerate(near)}
        self._look.extend(self._writer.look(candidate, identifier) for identifier in near)
        self._owner.extend([number] * len(near))
        self._hear(candidate, copies)
        gone = [i for i in (*near, *candidate.edit.change.removed) if i in self._place]
        self._replaced.extend((number, self._place[identifier]) for identifier in gone)

    def _hear(self, graph: Graph, hearers: Mapping[int, int]) -> None:
        """Let each of the hearers, ids with their places, hear from all its neighbours, of which some are no copies."""
        edges = self._writer.edges
        for identifier, place in hearers.items():
            for source, edge in edges(graph, identifier).items():
                self._message(hearers.get(source), source, place, edge, backward=False)
            for reader in graph.consumers[identifier]:
                self._message(hearers.get(reader), reader, place, edges(graph, reader)[identifier], backward=True)

    def _message(self, copy: int | None, sender: int, hearer: int, edge: int, *, backward: bool) -> None:
        self._messages.append((self._place[sender] if copy is None else copy, hearer))
        self._edge.append(edge)
        self._backward.append(backward)

    def finish(self) -> CandidateArrays:
        return CandidateArrays(
            look=np.array(self._look, np.int32),
            owner=np.array(self._owner, np.int32),
            messages=np.array(self._messages, np.int32).reshape(-1, 2),
            edge=np.array(self._edge, np.int32),
            backward=np.array(self._backward, bool),
            replaced=np.array(self._replaced, np.int32).reshape(-1, 2),
            candidates=self._candidates,
        )


def _shape(tensor_type: TensorType | None) -> list[float]:
    """The last dimensions of a tensor, the last one first; 0 where there are none or they are not known."""
    shape = (tensor_type.shape if tensor_type is not None else None) or ()
    last = [_LOG_SCALE * math.log2(1 + size) if isinstance(size, int) else 0.0 for size in reversed(shape)]
    return (last + [0.0] * _DIMENSIONS)[:_DIMENSIONS]
