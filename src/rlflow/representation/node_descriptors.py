"""The descriptor of a node in a token: its operator, its own features, its price and what that is estimated to be.

Most nodes of a model look like others, and nearly all of a graph are those of the graph before it. So descriptors are
numbered, equal ones alike, and what follows from a node without its graph is worked out once.

The invariant: equal numbers are equal descriptors for as long as nothing was forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import log2
from typing import NamedTuple

import numpy as np

from rlflow.cost.base import LocalCostModel
from rlflow.cost.work import NodeWork
from rlflow.ir.graph import Graph
from rlflow.ir.node import Node
from rlflow.ir.preview import Preview
from rlflow.ops import registry
from rlflow.representation.own_features import OwnFeatures, operands_of
from rlflow.representation.price_profile import PriceProfile
from rlflow.representation.vocabulary import Vocabulary

PRICE_FEATURES = ("log2_price", "log2_estimated_price")

_MAX_REMEMBERED = 200_000
_LEAST_PRICE = 2.0**-16  # of the unit: what is cheaper costs nothing
_LOG_SCALE = 1 / 16


class NodeDescriptor(NamedTuple):
    """The index of a node's operator, its own features and those of its price; `price` is that itself."""

    op: int
    features: tuple[float, ...]
    price: float


class _Own(NamedTuple):
    """All that a node tells without prices: a row of `OwnFeatures`, and its work."""

    row: tuple[float, ...]
    work: NodeWork


class NodeDescriptors:
    """Numbers the descriptors of nodes, which `numbered` has in their order."""

    def __init__(self, vocabulary: Vocabulary, cost_model: LocalCostModel) -> None:
        self.cost_model = cost_model
        self.numbered: list[NodeDescriptor] = []
        self._numbers: dict[Hashable, int] = {}
        self._own_features = OwnFeatures(vocabulary)
        self._of_node: dict[Node, _Own] = {}
        self._of_content: dict[Hashable, _Own] = {}

    @property
    def is_full(self) -> bool:
        """True if it is time to forget."""
        return len(self.numbered) >= _MAX_REMEMBERED or len(self._of_node) >= _MAX_REMEMBERED

    def forget(self) -> None:
        """Forget all descriptors: numbers that were given out mean nothing any more."""
        for known in (self.numbered, self._numbers, self._of_node, self._of_content):
            known.clear()

    def of_node(self, graph: Graph, identifier: int) -> _Own:
        """Look at a node of a graph."""
        node = graph.nodes[identifier]
        known = self._of_node.get(node)
        if known is None:
            known = self._of_node[node] = self.of_content(node, graph.nodes.__getitem__)
        return known

    def of_content(self, node: Node, node_of: Callable[[int], Node]) -> _Own:
        """Look at a node that reads what `node_of` gives by ids."""
        operands = operands_of(node, node_of)
        content = (node.op, node.signature, operands)
        known = self._of_content.get(content)
        if known is None:
            types = [operand.type for operand in operands]
            work = NodeWork(registry.flops(node, types), registry.bytes_moved(node, types))
            known = self._of_content[content] = _Own(self._own_features.row(node, operands), work)
        return known

    def number(self, own: _Own, price: float, estimate: float) -> int:
        """Return the number of a descriptor at these prices, in the unit of a profile."""
        seen = (own.row, np.float32(price).item(), np.float32(estimate).item())
        number = self._numbers.get(seen)
        if number is None:
            op, *features = own.row
            number = self._numbers[seen] = len(self.numbered)
            self.numbered.append(NodeDescriptor(int(op), (*features, *map(_log2, seen[1:])), seen[1]))
        return number


class GraphDescriptors:
    """The descriptors of the nodes of one graph, by number, with prices in the unit of a profile."""

    def __init__(self, descriptors: NodeDescriptors, graph: Graph, profile: PriceProfile) -> None:
        self._descriptors, self._graph, self._profile = descriptors, graph, profile
        self._known: dict[int, tuple[int, tuple[int, ...]]] = {}

    def of(self, identifier: int) -> tuple[int, tuple[int, ...]]:
        """Return the descriptor of a running node, and the nodes of the part in whose price it has its share."""
        known = self._known.get(identifier)
        if known is None:
            self._look_at_part(identifier)
            known = self._known[identifier]
        return known

    def of_added(self, identifier: int, edit: Preview) -> int:
        """Return the descriptor of a node that an edit adds; its price is the estimate."""
        nodes, added = self._graph.nodes, edit.added
        own = self._descriptors.of_content(added[identifier], lambda i: added[i] if i in added else nodes[i])
        estimate = self._estimate(own)
        return self._descriptors.number(own, estimate, estimate)

    def _look_at_part(self, identifier: int) -> None:
        nodes, ms = self._descriptors.cost_model.part_of(self._graph, identifier)
        owns = [self._descriptors.of_node(self._graph, node) for node in nodes]
        shares_ms = self._profile.shares_ms([own.work for own in owns], ms)
        for node, own, share_ms in zip(nodes, owns, shares_ms, strict=True):
            price = share_ms / self._profile.median_ms
            self._known[node] = self._descriptors.number(own, price, self._estimate(own)), nodes

    def _estimate(self, own: _Own) -> float:
        return self._profile.ms(own.work.flops, own.work.bytes_moved) / self._profile.median_ms


def _log2(price: float) -> float:
    return _LOG_SCALE * log2(max(price, _LEAST_PRICE))
