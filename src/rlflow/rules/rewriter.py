"""The one door to rewriting, for agents and searches alike: which rules apply where, and what comes of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

from rlflow.ir.graph import Change, Graph
from rlflow.rules.apply import apply
from rlflow.rules.match import Match, Variant, climb, compile_variants, descend, matches_at
from rlflow.rules.rule import Rule


@dataclass(frozen=True, slots=True)
class _Entry:
    """A match, its rule's index, and its number among that rule's matches at the same root."""

    rule: int
    serial: int
    match: Match


@dataclass(frozen=True, slots=True)
class _Found:
    """The matches of one first root. Those of one rule, and of a symmetric one, are ordered by where they lie."""

    entries: tuple[_Entry, ...]
    need_order: bool


_Entries = Mapping[int, _Found]
"""First root -> its matches."""


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
        several = [(i, v) for i, v in variants if v.has_several_roots]
        self._single = _Matcher([(i, v) for i, v in variants if not v.has_several_roots])
        self._several = _Matcher(several)
        self._relations = _relations([v for _, v in several])
        self._symmetric = {i for i, v in several if v.symmetric}
        self._depth = [max(v.depth for i, v in variants if i == index) for index in range(len(self.rules))]
        self._several_depth = max((v.depth for _, v in several), default=0)
        self._tables: WeakKeyDictionary[Graph, _Table] = WeakKeyDictionary()
        self._pending: WeakKeyDictionary[Graph, _Table] = WeakKeyDictionary()  # tables of parents

    def matches(self, graph: Graph) -> tuple[tuple[Match, ...], ...]:
        """For each rule, all its matches, ordered by the topological positions of their nodes, roots first."""
        found: list[list[Match]] = [[] for _ in self.rules]
        position = graph.position
        table = self._table(graph)
        for roots in (table.single, table.several):  # a rule's matches are all in the same one
            for root in sorted(roots, key=position.__getitem__):
                here = roots[root]
                for entry in self._in_order(here.entries, position) if here.need_order else here.entries:
                    found[entry.rule].append(entry.match)
        return tuple(map(tuple, found))

    def _in_order(self, entries: tuple[_Entry, ...], position: Mapping[int, int]) -> Iterable[_Entry]:
        keyed = []
        for entry in entries:
            match = entry.match
            roots = list(dict.fromkeys(position[r.node] for r in match.roots))
            if entry.rule in self._symmetric and any(a > b for a, b in pairwise(roots)):
                continue  # the same roots in another order
            inner = sorted(position[n] for n in match.nodes[len(roots) :])
            keyed.append(((*roots, *inner), entry.serial, entry))
        return (entry for *_, entry in sorted(keyed, key=lambda e: e[:2]))

    def _found(self, entries: tuple[_Entry, ...]) -> _Found:
        rules = {e.rule for e in entries}
        return _Found(entries, len(rules) < len(entries) or not self._symmetric.isdisjoint(rules))

    def apply(self, graph: Graph, match: Match) -> Graph:
        """The rewritten graph; `match` must come from `matches(graph)`."""
        child = apply(graph, match)
        self._pending[child] = self._table(graph)
        return child

    def _table(self, graph: Graph) -> _Table:
        """What is known of the graph, brought up to date from its parent's when it is first asked for."""
        table = self._tables.get(graph)
        if table is None:
            parents = self._pending.pop(graph, None)
            if parents is None or graph.edit is None:
                table = _Table(
                    {i: self._found(found) for i in graph.order if (found := self._single.at(graph, i))},
                    {i: self._found(found) for i in graph.order if (found := self._several.at(graph, i))},
                )
            else:
                table = _Table(
                    self._updated_single(parents.single, graph, graph.edit.change),
                    self._updated_several(parents.several, graph, graph.edit.change),
                )
            self._tables[graph] = table
        return table

    def _updated_single(self, entries: _Entries, graph: Graph, change: Change) -> _Entries:
        """A match is affected if a changed node lies less than the rule's depth below its root."""
        updated = dict(entries)
        for removed in change.removed:
            updated.pop(removed, None)
        for identifier, distance in _distances(graph, change.touched, max(self._depth, default=0)).items():
            if graph.nodes[identifier].constant:
                continue
            before = updated.pop(identifier, None)
            kept = [e for e in before.entries if self._depth[e.rule] <= distance] if before else []
            found = (*kept, *self._single.at(graph, identifier, deeper_than=distance))
            if found:
                updated[identifier] = self._found(found)
        return updated

    def _updated_several(self, entries: _Entries, graph: Graph, change: Change) -> _Entries:
        """Matches through a changed node are looked for again, and so are those that a changed root may now join."""
        if not self._relations:
            return entries
        dirty = change.touched.union(change.removed)
        stale = {
            root for root, found in entries.items() if any(not dirty.isdisjoint(e.match.nodes) for e in found.entries)
        }
        for identifier in _distances(graph, change.touched, self._several_depth):
            for descent, ascent in self._relations.get(graph.nodes[identifier].op, ()):
                anchor = descend(graph, identifier, descent)
                if anchor is not None:
                    stale.update(climb(graph, anchor, ascent))
        updated = {root: found for root, found in entries.items() if root not in stale}
        for identifier in stale:
            if identifier in graph.nodes and (matches := self._several.at(graph, identifier)):
                updated[identifier] = self._found(matches)
        return updated


def _relations(variants: Sequence[Variant]) -> Mapping[str, set[tuple[tuple[int, ...], tuple[str, ...]]]]:
    """Operator of any root -> the ways down to the anchor and up again to the first root."""
    related: dict[str, set[tuple[tuple[int, ...], tuple[str, ...]]]] = defaultdict(set)
    for variant in variants:
        for root, descent in zip(variant.source, variant.descents, strict=True):
            related[root.op].add((descent, variant.ascents[0]))
    return related


class _Matcher:
    """Looks for matches at a node, among the variants whose first root has its operator and its operands'."""

    def __init__(self, variants: Sequence[tuple[int, Variant]]) -> None:
        self._by_operator: dict[str, list[tuple[int, Variant]]] = defaultdict(list)
        for index, variant in variants:
            self._by_operator[variant.source[0].op].append((index, variant))
        self._fitting: dict[tuple[str, ...], list[tuple[int, Variant]]] = {}

    def at(self, graph: Graph, root: int, deeper_than: int = -1) -> tuple[_Entry, ...]:
        """Matches of the variants of more than this depth."""
        entries: list[_Entry] = []
        seen = set()
        for index, variant in self._candidates(graph, root):
            if variant.depth <= deeper_than:
                continue
            for match in matches_at(variant, graph, root):
                key = (index, match.roots, tuple(sorted(match.bindings.items())))
                if key not in seen and match.targets != match.roots:
                    seen.add(key)
                    entries.append(_Entry(index, len(entries), match))
        return tuple(entries)

    def _candidates(self, graph: Graph, root: int) -> Sequence[tuple[int, Variant]]:
        node = graph.nodes[root]
        same = self._by_operator.get(node.op)
        if same is None:
            return ()
        operators = tuple("" if r is None else graph.nodes[r.node].op for r in node.inputs)
        key = (node.op, *operators)
        if key not in self._fitting:
            self._fitting[key] = [
                (index, variant)
                for index, variant in same
                if all(operators[i : i + 1] == (op,) for i, op in variant.operand_operators)
            ]
        return self._fitting[key]


def _distances(graph: Graph, start: Set[int], limit: int) -> dict[int, int]:
    """Node -> how few consumers it is away from one of `start`, below `limit`."""
    distances = dict.fromkeys(start, 0)
    frontier = list(distances)
    for distance in range(1, limit):
        frontier = [c for c in dict.fromkeys(c for i in frontier for c in graph.consumers[i]) if c not in distances]
        distances.update(dict.fromkeys(frontier, distance))
    return distances
