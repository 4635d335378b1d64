"""A graph as arrays: the nodes that run and the inputs that they read, with what an encoder may know of each.

The arrays are written in a `Vocabulary`: that of a fitted model, or today's. No feature tells where in the model a node
stands, so that equal layers look equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from rlflow.ir.depth_first import spliced
from rlflow.ir.graph import Graph
from rlflow.ir.node import INPUT, Node
from rlflow.representation.graph_arrays import GraphArrays
from rlflow.representation.own_features import (
    COUNT_SCALE,
    OWN_FEATURES,
    OwnFeatures,
    columns,
    operands_of,
    todays_operators,
)
from rlflow.representation.vocabulary import OPAQUE, PADDING, Vocabulary

FEATURES = (*OWN_FEATURES, "consumers", "is_output")
"""What is computed today, in the order in which it is."""

_MAX_REMEMBERED = 200_000


def todays_vocabulary() -> Vocabulary:
    """Every operator that the library knows, and every feature."""
    return Vocabulary(todays_operators(), FEATURES)


def vocabulary_of(operators: Sequence[str]) -> Vocabulary:
    """The operators of another language than ONNX, such as HLO, and every feature."""
    return Vocabulary((PADDING, OPAQUE, INPUT, *operators), FEATURES)


class Featuriser:
    """Writes graphs as arrays. They share most nodes: each node is looked at once, and equal nodes have one row.

    The numbers mean what `vocabulary` says, today's by default. Graphs have the operators of the library, or those
    `operators` of another language; one that only these or only the vocabulary has looks like an opaque one, which is
    warned of once. `InputError` if a feature is no longer computed.
    """

    def __init__(self, vocabulary: Vocabulary | None = None, operators: Sequence[str] | None = None) -> None:
        self.vocabulary = vocabulary or todays_vocabulary()
        self._columns = columns(self.vocabulary, FEATURES)
        self._own = OwnFeatures(self.vocabulary, operators)
        self._row_of_node: dict[Node, int] = {}
        self._row: dict[tuple[float, ...], int] = {}
        self._table = np.zeros((0, 1 + len(OWN_FEATURES)))
        self._rows: WeakKeyDictionary[Graph, np.ndarray] = WeakKeyDictionary()

    def arrays(self, graph: Graph) -> GraphArrays:
        """Return op (N,), features (N, F) and edges (E, 2); nodes are the inputs, then the graph's order."""
        rows = np.concatenate((self._looked_at(graph, graph.inputs), self._running(graph)))
        if len(self._table) < len(self._row):
            self._table = np.array(list(self._row), dtype=np.float64)
        own = self._table[rows]
        place, layout = graph.places(), graph.layout
        senders = place[layout.operands]
        receivers = np.repeat(np.arange(len(graph.inputs), len(rows)), layout.counts)
        features = np.zeros((len(rows), len(FEATURES)), dtype=np.float32)
        features[:, : len(OWN_FEATURES)] = own[:, 1:]
        features[:, len(OWN_FEATURES)] = COUNT_SCALE * np.bincount(senders, minlength=len(rows))
        features[[place[i] for i in graph.output_nodes if not graph.nodes[i].constant], len(OWN_FEATURES) + 1] = 1.0
        edges = np.stack((senders, receivers), axis=1, dtype=np.int64)
        return GraphArrays(own[:, 0].astype(np.int64), np.ascontiguousarray(features[:, self._columns]), edges)

    def _running(self, graph: Graph) -> np.ndarray:
        """The rows of the running nodes, taken from the parent's where only pieces of the order have changed."""
        rows = self._rows.get(graph)
        if rows is None:
            parent = graph.edit.parent() if graph.edit else None
            before = self._rows.get(parent) if parent is not None else None
            if before is not None and graph.pieces:
                rows = spliced(graph.pieces, before, lambda piece: self._looked_at(graph, piece))
            else:
                rows = self._looked_at(graph, graph.order)
            self._rows[graph] = rows
        return rows

    def _looked_at(self, graph: Graph, identifiers: Iterable[int]) -> np.ndarray:
        """The rows of these nodes in the table, (nodes,) int32."""
        nodes = ((graph.nodes[i], self._row_of_node.get(graph.nodes[i])) for i in identifiers)
        rows = [self._new_row(graph, node) if row is None else row for node, row in nodes]
        return np.array(rows, dtype=np.int32)

    def _new_row(self, graph: Graph, node: Node) -> int:
        if len(self._row_of_node) >= _MAX_REMEMBERED:
            self._row_of_node.clear()
        own = self._own.row(node, operands_of(node, graph.nodes.__getitem__))
        row = self._row.setdefault(own, len(self._row))
        self._row_of_node[node] = row
        return row
