"""The one door to rewriting, for agents and searches alike: which rules apply where, and what comes of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

from rlflow.ir.graph import Graph
from rlflow.rules.apply import apply
from rlflow.rules.match import Match, Variant, compile_variants, matches_at
from rlflow.rules.rule import Rule

_Entries = Mapping[int, tuple[tuple[int, Match], ...]]
"""First root -> (rule's index, match) pairs, in the order of rules and variants."""

_Variants = Mapping[str, Sequence[tuple[int, Variant]]]
"""Operator of the first root -> (rule's index, variant)."""


class Location(NamedTuple):
    """An action: rule index, and the number of the match among that rule's matches in their deterministic
    order.
    """

    rule: int
    location: int


@dataclass(frozen=True, slots=True)
class _Table:
    """The matches of one graph: of rules with one root, and of rules with several."""

    single: _Entries
    several: _Entries


class Rewriter:
    """Matches of a list of rules in any graph.

    Matching is incremental: a graph that came out of `apply` takes over its parent's matches and looks again
    only where the rewrite can have changed something. What is remembered of a graph lives as long as the
    graph.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        variants = [(i, v) for i, rule in enumerate(self.rules) for v in compile_variants(rule)]
        self._single = _by_operator([(i, v) for i, v in variants if not v.has_several_roots])
        self._several = _by_operator([(i, v) for i, v in variants if v.has_several_roots])
        self._symmetric = {i for i, v in variants if v.symmetric}
        self._reach = max((v.depth for _, v in variants), default=1)
        self._tables: WeakKeyDictionary[Graph, _Table] = WeakKeyDictionary()

    def matches(self, graph: Graph) -> tuple[tuple[Match, ...], ...]:
        """For each rule, all its matches, ordered by the topological positions of their nodes, roots first."""
        found: list[list[tuple[tuple[int, ...], int, Match]]] = [[] for _ in self.rules]
        position = graph.position
        table = self._table(graph)
        for entries in (*table.single.values(), *table.several.values()):
            for serial, (index, match) in enumerate(entries):
                roots = tuple(position[n] for n in dict.fromkeys(r.node for r in match.roots))
                if index in self._symmetric and any(a > b for a, b in pairwise(roots)):
                    continue  # the same roots in another order
                inner = sorted(position[n] for n in match.nodes[len(roots) :])
                found[index].append(((*roots, *inner), serial, match))
        return tuple(tuple(match for *_, match in sorted(group, key=lambda e: e[:2])) for group in found)

    def apply(self, graph: Graph, match: Match) -> Graph:
        """The rewritten graph; `match` must come from `matches(graph)`."""
        table = self._table(graph)
        child, change = apply(graph, match)
        readers = _upwards(child, change.touched, self._reach)
        relatives = _upwards(child, _downwards(child, readers, self._reach), self._reach)
        self._tables[child] = _Table(
            _updated(table.single, child, readers, self._single),
            _updated(table.several, child, relatives, self._several),
        )
        return child

    def _table(self, graph: Graph) -> _Table:
        table = self._tables.get(graph)
        if table is None:
            everywhere = frozenset(graph.order)
            table = _Table(
                _updated({}, graph, everywhere, self._single), _updated({}, graph, everywhere, self._several)
            )
            self._tables[graph] = table
        return table


def _by_operator(variants: Sequence[tuple[int, Variant]]) -> _Variants:
    grouped: dict[str, list[tuple[int, Variant]]] = defaultdict(list)
    for index, variant in variants:
        grouped[variant.source[0].op].append((index, variant))
    return grouped


def _updated(entries: _Entries, graph: Graph, stale: Set[int], variants: _Variants) -> _Entries:
    if not variants:
        return {}
    updated = {i: found for i, found in entries.items() if i in graph.nodes and i not in stale}
    for identifier in stale:
        if not graph.nodes[identifier].constant and (found := _matches_at(graph, identifier, variants)):
            updated[identifier] = found
    return updated


def _matches_at(graph: Graph, root: int, variants: _Variants) -> tuple[tuple[int, Match], ...]:
    entries: list[tuple[int, Match]] = []
    seen = set()
    for index, variant in variants.get(graph.nodes[root].op, ()):
        for match in matches_at(variant, graph, root):
            key = (index, match.roots, tuple(sorted(match.bindings.items())))
            if key not in seen and match.targets != match.roots:
                seen.add(key)
                entries.append((index, match))
    return tuple(entries)


def _upwards(graph: Graph, start: Set[int], reach: int) -> set[int]:
    """The nodes that have one of `start` at most `reach` operands below them: roots of matches through it."""
    frontier, reached = set(start), set(start)
    for _ in range(reach):
        frontier = {c for i in frontier for c in graph.consumers[i]} - reached
        reached |= frontier
    return reached


def _downwards(graph: Graph, start: Set[int], reach: int) -> set[int]:
    """Operands of `start`, down to `reach` levels: where another root of a match may hang."""
    frontier, reached = set(start), set(start)
    for _ in range(reach):
        frontier = {s for i in frontier for s in graph.nodes[i].sources if not graph.nodes[s].constant} - reached
        reached |= frontier
    return reached
