"""Rewriting that shares: rules also apply where others read the values inside, and no value is computed twice.

The plain rewriter refuses Relu(MatMul(x, w)) where somebody else reads the product, since the product would be computed
twice afterwards. Where many rewrites work together, as in an e-graph, that is often worth while, so that here:

    matches     those of the plain rewriter, and those whose inner values have other readers, for which they stay
    apply       what becomes the same node on the same operands is merged, and so upwards through all readers

An example of the second: rewriting Relu(a) to Relu(b) while Exp(Relu(b)) is there makes one Exp out of two.

Invariants: a match of the plain rewriter is a match here. A graph that comes out of `apply` is one edit away from the
one that went in, and among the readers that the edit changed no two are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import ClassVar

from rlflow.errors import InputError
from rlflow.ir.constant_hash import constant_hash
from rlflow.ir.graph import Graph
from rlflow.ir.node import Node, Ref
from rlflow.ops.registry import OPERATORS
from rlflow.rules.matching.apply import edit_of
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule


class SharingRewriter(Rewriter):
    """A rewriter that admits values inside a match that others read, and merges what becomes equal."""

    matching: ClassVar[str] = "sharing"

    def _admits(self, graph: Graph, inside: Mapping[int, object], inner: Sequence[int]) -> bool:
        return True

    def edit(self, graph: Graph, match: Match) -> tuple[dict[int, Node], dict[Ref, Ref]]:
        """Return the nodes that `apply` adds, and what is read in place of each value that it replaces."""
        added, substitution = edit_of(graph, match)
        return added, _Merging(graph, added, substitution).completed()


_KINDS: Mapping[str, type[Rewriter]] = {kind.matching: kind for kind in (Rewriter, SharingRewriter)}


def rewriter_of(matching: str, rules: Sequence[Rule]) -> Rewriter:
    """Make the rewriter with which a trajectory of this `matching` was recorded; `InputError` if there is none."""
    if matching not in _KINDS:
        raise InputError(f"there is no rewriter with {matching!r} matching: choose among {', '.join(_KINDS)}")
    return _KINDS[matching](rules)


_Key = tuple[int, tuple[object, ...]]
"""The signature of a node and its operands, in any order where that does not matter: equal nodes compute the same."""


class _Merging:
    """An edit being completed by what becomes the same through it.

    Readers are looked at in the graph's order, so that the operands of each are final when its turn comes.
    """

    def __init__(self, graph: Graph, added: Mapping[int, Node], substitution: Mapping[Ref, Ref]) -> None:
        self.graph = graph
        self.substitution = dict(substitution)
        self.position = graph.positions()
        self.replaced = {ref.node for ref in substitution}
        self.settled: dict[_Key, int] = {}
        for identifier, node in added.items():
            self.settled.setdefault(self._key(node, added), identifier)

    def completed(self) -> dict[Ref, Ref]:
        """Return the substitution with that of each node that becomes one that is there already."""
        waiting: list[tuple[int, int]] = []
        seen = set(self.replaced)
        for reader in self._readers(list(self.substitution), seen):
            heappush(waiting, (self.position[reader], reader))
        while waiting:
            _, identifier = heappop(waiting)
            node = self.graph.nodes[identifier]
            same = None if node.is_opaque else self._same(identifier, node, seen)
            if same is not None:
                refs = [Ref(identifier, index) for index in range(len(node.types))]
                self.substitution.update({ref: Ref(same, ref.index) for ref in refs})
                for reader in self._readers(refs, seen):
                    heappush(waiting, (self.position[reader], reader))
        return self.substitution

    def _readers(self, refs: Iterable[Ref], seen: set[int]) -> Iterator[int]:
        """Yield the readers of these values that were not seen before, and remember them."""
        for ref in refs:
            for reader in self.graph.consumers[ref.node]:
                if reader not in seen and ref in self.graph.nodes[reader].inputs:
                    seen.add(reader)
                    yield reader

    def _same(self, identifier: int, node: Node, changed: set[int]) -> int | None:
        """Return the node that computes the same as this changed one: one dealt with before, or one left unchanged."""
        key = self._key(node)
        if key in self.settled:
            return self.settled[key]
        (operand, *_) = (self._now(ref) for ref in node.inputs if ref is not None and self._now(ref) != ref)
        alike = [
            reader
            for reader in self.graph.consumers.get(operand.node, ())
            if reader not in changed and self.graph.nodes[reader].signature == node.signature
            if self._key(self.graph.nodes[reader]) == key
        ]
        if alike:
            return min(alike, key=self.position.__getitem__)
        self.settled[key] = identifier
        return None

    def _key(self, node: Node, added: Mapping[int, Node] | None = None) -> _Key:
        operands = tuple(self._operand(ref, added or {}) for ref in node.inputs)
        commutes = not node.is_opaque and node.op in OPERATORS and OPERATORS[node.op].commutative
        return node.signature, tuple(sorted(operands, key=repr)) if commutes else operands

    def _operand(self, ref: Ref | None, added: Mapping[int, Node]) -> object:
        """Return what identifies an operand; constants that are computed alike count as one."""
        if ref is None or ref.node in added:
            return ref
        now = self._now(ref)
        if now.node in self.graph.nodes and self.graph.nodes[now.node].constant:
            return constant_hash(self.graph.nodes, now)
        return now

    def _now(self, ref: Ref) -> Ref:
        return self.substitution.get(ref, ref)
