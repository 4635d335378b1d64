"""Graph -> arrays: the nodes that run and the inputs that they read, with what an encoder may know of each.

No feature tells where in the model a node stands, so that equal layers look equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from weakref import WeakKeyDictionary

import numpy as np

from rlflow.ir.depth_first import spliced
from rlflow.ir.graph import Graph
from rlflow.ir.node import INPUT, Node
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.representation.graph_arrays import GraphArrays

VOCABULARY = ("<padding>", "<opaque>", INPUT, *sorted(name for name, op in registry.OPERATORS.items() if op.arity[1]))
"""Operator names by index, version 1; an operator that is not in it is opaque. What has no operands never runs."""
VOCABULARY_SIZE = len(VOCABULARY)
FEATURES = (
    "log2_elements",
    "rank",
    "log2_last_dimension",
    "log2_flops",
    "log2_bytes",
    "log2_constant_elements",
    "operands",
    "constant_operands",
    "consumers",
    "is_output",
)
NUM_FEATURES = len(FEATURES)

_INDEX = {name: index for index, name in enumerate(VOCABULARY)}
_OPAQUE = _INDEX["<opaque>"]
_LOG_SCALE = 1 / 32
_COUNT_SCALE = 1 / 4
_OWN_FEATURES = NUM_FEATURES - 2  # what a node and its operands tell; its readers tell the rest
_MAX_REMEMBERED = 200_000


class Featuriser:
    """Arrays of graphs that share most of their nodes; a node object is looked at once, equal nodes have one row."""

    def __init__(self) -> None:
        self._row_of_node: dict[Node, int] = {}
        self._row: dict[tuple[float, ...], int] = {}
        self._table = np.zeros((0, 1 + _OWN_FEATURES))
        self._rows: WeakKeyDictionary[Graph, np.ndarray] = WeakKeyDictionary()

    def arrays(self, graph: Graph) -> GraphArrays:
        """op (N,), features (N, F), edges (E, 2); nodes are the inputs, then the graph's order."""
        rows = np.concatenate((self._looked_at(graph, graph.inputs), self._running(graph)))
        if len(self._table) < len(self._row):
            self._table = np.array(list(self._row), dtype=np.float64)
        own = self._table[rows]
        place, layout = graph.places(), graph.layout
        senders = place[layout.operands]
        receivers = np.repeat(np.arange(len(graph.inputs), len(rows)), layout.counts)
        features = np.zeros((len(rows), NUM_FEATURES), dtype=np.float32)
        features[:, :_OWN_FEATURES] = own[:, 1:]
        features[:, _OWN_FEATURES] = _COUNT_SCALE * np.bincount(senders, minlength=len(rows))
        features[[place[i] for i in graph.output_nodes if not graph.nodes[i].constant], _OWN_FEATURES + 1] = 1.0
        return GraphArrays(own[:, 0].astype(np.int64), features, np.stack((senders, receivers), axis=1, dtype=np.int64))

    def _running(self, graph: Graph) -> np.ndarray:
        """(running nodes,): their rows, from the parent's where its order is the graph's but for some pieces."""
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
        """(nodes,) int32 rows of the table."""
        nodes = ((graph.nodes[i], self._row_of_node.get(graph.nodes[i])) for i in identifiers)
        rows = [self._new_row(graph, node) if row is None else row for node, row in nodes]
        return np.array(rows, dtype=np.int32)

    def _new_row(self, graph: Graph, node: Node) -> int:
        if len(self._row_of_node) >= _MAX_REMEMBERED:
            self._row_of_node.clear()
        op = _OPAQUE if node.is_opaque else _INDEX.get(node.op, _OPAQUE)
        row = self._row.setdefault((op, *_own_features(graph, node)), len(self._row))
        self._row_of_node[node] = row
        return row


def _own_features(graph: Graph, node: Node) -> tuple[float, ...]:
    operands = [(graph.nodes[r.node], graph.type_of(r)) for r in node.inputs if r is not None]
    kinds = [kind for _, kind in operands]
    constants = [kind for operand, kind in operands if operand.constant and kind is not None]
    result = node.types[0] if node.types else None
    return (
        _log(result.elements if result else 0),
        _COUNT_SCALE * ((result.rank if result else 0) or 0),
        _log(_last_dimension(result)),
        _log(registry.flops(node, kinds)),
        _log(registry.bytes_moved(node, kinds)),
        _log(sum(kind.elements for kind in constants)),
        _COUNT_SCALE * len(operands),
        _COUNT_SCALE * len(constants),
    )


def _log(value: int) -> float:
    return _LOG_SCALE * math.log2(1 + value)


def _last_dimension(kind: TensorType | None) -> int:
    last = kind.shape[-1] if kind is not None and kind.shape else 0
    return last if isinstance(last, int) else 0
