"""Graph -> arrays: the nodes that run and the inputs that they read, with what an encoder may know of each.

No feature tells where in the model a node stands, so that equal layers look equal.
"""

from __future__ import annotations

import math

import numpy as np

from rlflow.ir.graph import INPUT, Graph, Node
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.representation.graph_arrays import GraphArrays

VOCABULARY = ("<padding>", "<opaque>", INPUT, *sorted(registry.OPERATORS))
"""Operator names by index, version 1; an operator that is not in it is opaque."""
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


class Featuriser:
    """Arrays of graphs that share most of their nodes; a node object is looked at once."""

    def __init__(self) -> None:
        self._own: dict[Node, tuple[float, ...]] = {}

    def arrays(self, graph: Graph) -> GraphArrays:
        """op (N,), features (N, F), edges (E, 2); nodes are the inputs, then the graph's order."""
        identifiers = (*graph.inputs, *graph.order)
        place = {identifier: index for index, identifier in enumerate(identifiers)}
        nodes = [graph.nodes[i] for i in identifiers]
        op = [_OPAQUE if n.is_opaque else _INDEX.get(n.op, _OPAQUE) for n in nodes]
        rows = [
            (
                *self._of_node(graph, node),
                _COUNT_SCALE * len(graph.consumers[identifier]),
                float(identifier in graph.output_nodes),
            )
            for identifier, node in zip(identifiers, nodes, strict=True)
        ]
        edges = [(place[s], index) for index, node in enumerate(nodes) for s in node.sources if s in place]
        return GraphArrays(
            op=np.array(op, dtype=np.int64),
            features=np.array(rows, dtype=np.float32).reshape(len(rows), NUM_FEATURES),
            edges=np.array(edges, dtype=np.int64).reshape(-1, 2),
        )

    def _of_node(self, graph: Graph, node: Node) -> tuple[float, ...]:
        known = self._own.get(node)
        if known is None:
            known = self._own[node] = _own_features(graph, node)
        return known


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
