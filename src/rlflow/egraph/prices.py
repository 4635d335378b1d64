"""The price of a single node, by which an e-graph is explored: that of a graph of this node alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rlflow.cost.base import CostModel
from rlflow.ir.graph import Graph, Header, make_graph
from rlflow.ir.node import INPUT, Node, Ref
from rlflow.ir.tensor_type import TensorType

Types = Sequence[TensorType | None]

NodePrice = Callable[[Node, Types], float]
"""Gives the milliseconds that a node takes which reads operands of these types, those that are left out excepted."""


class NodePrices:
    """Prices of single nodes by a cost model, each asked for once.

    A cost model whose prices add up over nodes prices a graph as the sum of these. Where nodes are priced together, as
    a runtime fuses them, they are what each would take alone.
    """

    def __init__(self, cost_model: CostModel, header: Header) -> None:
        self._cost_model = cost_model
        self._header = header
        self._known: dict[tuple[int, tuple[TensorType | None, ...]], float] = {}

    def __call__(self, node: Node, operands: Types) -> float:
        key = (node.signature, tuple(operands))
        if key not in self._known:
            self._known[key] = self._cost_model.runtime_ms(_alone(node, operands, self._header))
        return self._known[key]


def _alone(node: Node, operands: Types, header: Header) -> Graph:
    """Return a graph in which the node reads nothing but inputs."""
    nodes = {place: Node(INPUT, (), {}, (kind,), (f"value_{place}",)) for place, kind in enumerate(operands)}
    places = iter(nodes)
    inputs = tuple(None if ref is None else Ref(next(places)) for ref in node.inputs)
    identifier = len(operands)
    running = Node(node.op, inputs, node.attributes, node.types, node.names, payload=node.payload)
    outputs = [Ref(identifier, index) for index in range(len(node.types))]
    names = [f"output_{index}" for index in range(len(node.types))]
    return make_graph({**nodes, identifier: running}, range(len(operands)), outputs, names, header)
