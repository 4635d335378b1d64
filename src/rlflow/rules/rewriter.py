"""The one door to rewriting, for agents and searches alike: which rules apply where, and what comes of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

from rlflow.ir.graph import Change, Graph
from rlflow.rules.apply import apply
from rlflow.rules.discrimination_tree import climb, descend
from rlflow.rules.match import Match, Matcher
from rlflow.rules.rule import Rule
from rlflow.rules.variants import Variant, compile_variants

_Entries = tuple[tuple[int, Match], ...]
"""(rule index, match); those of one rule in the order of its variants."""

_ByRoot = Mapping[int, _Entries]
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

    single: _ByRoot
    several: _ByRoot


class Rewriter:
    """Matches of a list of rules in any graph.

    Matching is incremental: a graph that came out of `apply` takes over its parent's matches and looks again
    only where the rewrite can have changed something. What is remembered of a graph lives as long as the
    graph.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        variants = [(i, v) for i, rule in enumerate(self.rules) for v in compile_variants(rule)]
        several = [(i, v) for i, v in variants if len(v.roots) > 1]
        self._single = Matcher([(i, v) for i, v in variants if len(v.roots) == 1])
        self._several = Matcher(several)
        self._relations = _relations([v for _, v in several])
        self._symmetric = {i for i, v in several if v.symmetric}
        self._roots = {i: len(v.roots) for i, v in several}
        self._depth = [max(v.depth for i, v in variants if i == index) for index in range(len(self.rules))]
        self._several_depth = max((v.depth for _, v in several), default=0)
        self._tables: WeakKeyDictionary[Graph, _Table] = WeakKeyDictionary()
        self._pending: WeakKeyDictionary[Graph, _Table] = WeakKeyDictionary()  # tables of parents

    def matches(self, graph: Graph) -> tuple[tuple[Match, ...], ...]:
        """For each rule, all its matches, ordered by the topological positions of their nodes, roots first."""
        found: list[list[Match]] = [[] for _ in self.rules]
        table = self._table(graph)
        for root in graph.order:
            for rule, match in table.single.get(root, ()):
                found[rule].append(match)
            if root in table.several:
                for rule, match in self._in_order(table.several[root], graph.position):
                    found[rule].append(match)
        return tuple(map(tuple, found))

    def _in_order(self, entries: _Entries, position: Mapping[int, int]) -> Sequence[tuple[int, Match]]:
        """By where they lie. Of symmetric rules, whose roots are found in every order, the matches with roots in the
        graph's order."""

        def places(entry: tuple[int, Match]) -> tuple[list[int], list[int]]:
            rule, match = entry
            at = [position[n] for n in match.nodes]
            return at[: self._roots[rule]], sorted(at[self._roots[rule] :])

        kept = []
        for rule, match in entries:
            roots = [position[n] for n in match.nodes[: self._roots[rule]]]
            if rule not in self._symmetric or roots == sorted(roots):
                kept.append((rule, match))
        return sorted(kept, key=places) if len(kept) > 1 else kept

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
                table = _Table(_everywhere(self._single, graph), _everywhere(self._several, graph))
            else:
                table = _Table(
                    self._updated_single(parents.single, graph, graph.edit.change),
                    self._updated_several(parents.several, graph, graph.edit.change),
                )
            self._tables[graph] = table
        return table

    def _updated_single(self, entries: _ByRoot, graph: Graph, change: Change) -> _ByRoot:
        """A match is affected if a changed node lies less than the rule's depth below its root."""
        updated = dict(entries)
        for removed in change.removed:
            updated.pop(removed, None)
        for identifier, distance in _distances(graph, change.touched, max(self._depth, default=0)).items():
            if graph.nodes[identifier].constant:
                continue
            kept = (entry for entry in updated.pop(identifier, ()) if self._depth[entry[0]] <= distance)
            found = (*kept, *self._single.at(graph, identifier, deeper_than=distance))
            if found:
                updated[identifier] = found
        return updated

    def _updated_several(self, entries: _ByRoot, graph: Graph, change: Change) -> _ByRoot:
        """Matches through a changed node are looked for again, and so are those that a changed root may now join."""
        if not self._relations:
            return entries
        dirty = change.touched.union(change.removed)
        stale = {
            root for root, found in entries.items() if any(not dirty.isdisjoint(match.nodes) for _, match in found)
        }
        for identifier in _distances(graph, change.touched, self._several_depth):
            for descent, ascent in self._relations.get(graph.nodes[identifier].op, ()):
                anchor = descend(graph, identifier, descent)
                if anchor is not None:
                    stale.update(climb(graph, anchor, ascent))
        updated = {root: found for root, found in entries.items() if root not in stale}
        for identifier in stale:
            if identifier in graph.nodes and (found := tuple(self._several.at(graph, identifier))):
                updated[identifier] = found
        return updated


def _everywhere(matcher: Matcher, graph: Graph) -> _ByRoot:
    return {root: found for root in graph.order if (found := tuple(matcher.at(graph, root)))}


def _relations(variants: Sequence[Variant]) -> Mapping[str, set[tuple[tuple[int, ...], tuple[str, ...]]]]:
    """Operator of any root -> the ways down to the anchor and up again to the first root."""
    related: dict[str, set[tuple[tuple[int, ...], tuple[str, ...]]]] = defaultdict(set)
    for variant in variants:
        for root, descent in zip(variant.roots, variant.descents, strict=True):
            related[root.op].add((descent, variant.ascents[0]))
    return related


def _distances(graph: Graph, start: Set[int], limit: int) -> dict[int, int]:
    """Node -> how few consumers it is away from one of `start`, below `limit`."""
    distances = dict.fromkeys(start, 0)
    frontier = list(distances)
    for distance in range(1, limit):
        frontier = [c for c in dict.fromkeys(c for i in frontier for c in graph.consumers[i]) if c not in distances]
        distances.update(dict.fromkeys(frontier, distance))
    return distances
