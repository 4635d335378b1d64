"""A graph as arrays: the nodes that run and the inputs that they read, with what an encoder may know of each.

The arrays are written in a `Vocabulary`: that of a fitted model, or today's. No feature tells where in the model a node
stands, so that equal layers look equal.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from weakref import WeakKeyDictionary

import numpy as np

from rlflow.errors import InputError
from rlflow.ir.depth_first import spliced
from rlflow.ir.graph import Graph
from rlflow.ir.node import INPUT, Node
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.representation.graph_arrays import GraphArrays
from rlflow.representation.vocabulary import OPAQUE, PADDING, Vocabulary

log = logging.getLogger(__name__)

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
"""What is computed today, in the order in which it is."""

_LOG_SCALE = 1 / 32
_COUNT_SCALE = 1 / 4
_OWN_FEATURES = len(FEATURES) - 2  # what a node and its operands tell; its readers tell the rest
_MAX_REMEMBERED = 200_000


def todays_vocabulary() -> Vocabulary:
    """Every operator that the library knows, and every feature. An operator without operands never runs."""
    operators = sorted(name for name, operator in registry.OPERATORS.items() if operator.arity[1])
    return Vocabulary((PADDING, OPAQUE, INPUT, *operators), FEATURES)


class Featuriser:
    """Writes graphs as arrays. They share most nodes: each node is looked at once, and equal nodes have one row.

    The numbers mean what `vocabulary` says, today's by default. An operator that only one of the two vocabularies has
    looks like an opaque one, which is warned of once. `InputError` if a feature is no longer computed.
    """

    def __init__(self, vocabulary: Vocabulary | None = None) -> None:
        self.vocabulary = vocabulary or todays_vocabulary()
        self._columns = _columns(self.vocabulary)
        self._index = _index(self.vocabulary)
        self._unseen: set[str] = set()
        gone = sorted(set(self.vocabulary.operators) - set(todays_vocabulary().operators))
        if gone:
            log.warning("the library no longer knows %s, which the model does: it is opaque now", ", ".join(gone))
        self._row_of_node: dict[Node, int] = {}
        self._row: dict[tuple[float, ...], int] = {}
        self._table = np.zeros((0, 1 + _OWN_FEATURES))
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
        features[:, :_OWN_FEATURES] = own[:, 1:]
        features[:, _OWN_FEATURES] = _COUNT_SCALE * np.bincount(senders, minlength=len(rows))
        features[[place[i] for i in graph.output_nodes if not graph.nodes[i].constant], _OWN_FEATURES + 1] = 1.0
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
        index = self._index.get(node.op)
        if index is None and not node.is_opaque:
            self._warn_of(node.op)
        op = self._index[OPAQUE] if index is None or node.is_opaque else index
        is_known = op != self._index[OPAQUE]
        row = self._row.setdefault((op, *_own_features(graph, node, is_known)), len(self._row))
        self._row_of_node[node] = row
        return row

    def _warn_of(self, operator: str) -> None:
        if operator not in self._unseen:
            self._unseen.add(operator)
            log.warning("the operator %s is not in the vocabulary of the model: it is seen as an opaque one", operator)


def _columns(vocabulary: Vocabulary) -> list[int]:
    """The column of each feature among those of today; `InputError` naming the features that are not computed."""
    lacking = [name for name in vocabulary.features if name not in FEATURES]
    if lacking:
        raise InputError(
            f"the model was fitted on the feature {', '.join(lacking)}, which this version of rlflow does not compute: "
            "fit it again (fit_world_model), or use the version that it was fitted with"
        )
    return [FEATURES.index(name) for name in vocabulary.features]


def _index(vocabulary: Vocabulary) -> dict[str, int]:
    if OPAQUE not in vocabulary.operators:
        raise InputError(f"a vocabulary without {OPAQUE} has no place for operators that it does not know")
    return {name: index for index, name in enumerate(vocabulary.operators)}


def _own_features(graph: Graph, node: Node, is_known: bool) -> tuple[float, ...]:
    """The features, in the order of `FEATURES`, that a node and its operands give.

    What only the operator's definition tells is left out where the vocabulary does not know it, as for opaque nodes.
    """
    operands = [(graph.nodes[r.node], graph.type_of(r)) for r in node.inputs if r is not None]
    types = [tensor_type for _, tensor_type in operands]
    constants = [tensor_type for operand, tensor_type in operands if operand.constant and tensor_type is not None]
    result = node.types[0] if node.types else None
    return (
        _log(result.elements if result else 0),
        _COUNT_SCALE * ((result.rank if result else 0) or 0),
        _log(_last_dimension(result)),
        _log(registry.flops(node, types) if is_known else 0),
        _log(registry.bytes_moved(node, types) if is_known else _bytes_touched(node, types)),
        _log(sum(tensor_type.elements for tensor_type in constants)),
        _COUNT_SCALE * len(operands),
        _COUNT_SCALE * len(constants),
    )


def _bytes_touched(node: Node, operands: Iterable[TensorType | None]) -> int:
    return sum(tensor_type.nbytes for tensor_type in (*operands, *node.types) if tensor_type is not None)


def _log(value: int) -> float:
    return _LOG_SCALE * math.log2(1 + value)


def _last_dimension(tensor_type: TensorType | None) -> int:
    last = tensor_type.shape[-1] if tensor_type is not None and tensor_type.shape else 0
    return last if isinstance(last, int) else 0
