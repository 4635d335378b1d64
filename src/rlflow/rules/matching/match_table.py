"""The matches of all rules in a graph, kept so that a rewrite changes them where it happened and nowhere else.

A rule of one root whose source is d applications deep can only gain or lose a match at a root if a changed node lies
fewer than d consumers below that root. In the chain a -> b -> c -> e, with b changed, rules of depth 1 are matched
again at b alone, those of depth 2 at b and c, those of depth 3 at b, c and e. All other entries, and nearly all of the
persistent maps, are shared with the table of the graph before.

Matches of rules with several roots depend on nodes to the side of each other: those that contain a changed node are
dropped and looked for again, and so are those at first roots that share the rule's anchor, a variable that all its
roots read, with a changed root.

Invariant: `updated` gives the table that `new` would give.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from immutables import Map, MapMutation

from rlflow.ir.graph import Change, Graph
from rlflow.rules.matching.discrimination_tree import climb, descend
from rlflow.rules.matching.match import Admission, Indexed, Match, Matcher
from rlflow.rules.matching.variants import Variant, compile_variants
from rlflow.rules.rule import Rule

Place = TypeVar("Place", int, frozenset[int])
_ByRule = Map[int, Map[Place, tuple[Match, ...]]]
"""Rule index -> place -> the matches there, in the order of the rule's variants."""

_NOWHERE: Map[Any, tuple[Match, ...]] = Map()


@dataclass(frozen=True, slots=True)
class MatchTable:
    """The matches in one graph.

    - `single`: the matches of rules with one root, by that root.
    - `rules_at`: the rules that have a match in `single` at a root.
    - `joint`: the matches of rules with several roots, by the set of their nodes and in every order of their roots.
    """

    rules_at: Map[int, tuple[int, ...]]
    single: _ByRule[int]
    joint: _ByRule[frozenset[int]]


class CompiledRules:
    """A list of rules as their matches are looked for, which takes as long as many a search: it is done once."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        variants = [(index, variant) for index, rule in enumerate(rules) for variant in compile_variants(rule)]
        joint = [(index, variant) for index, variant in variants if len(variant.roots) > 1]
        self.single = Indexed([(index, variant) for index, variant in variants if len(variant.roots) == 1])
        self.joint = Indexed(joint)
        self.depth = {index: variant.depth for index, variant in variants}
        self.largest_depth = max(self.depth.values(), default=0)
        self.roots = {index: len(variant.roots) for index, variant in joint}
        self.symmetric = {index for index, variant in joint if variant.symmetric}
        self.relations = _relations([variant for _, variant in joint])


class MatchTables:
    """Makes, updates and reads the match tables of a list of rules."""

    def __init__(self, rules: CompiledRules, admits: Admission) -> None:
        self._rules = rules
        self._single, self._joint = Matcher(rules.single, admits), Matcher(rules.joint, admits)

    def new(self, graph: Graph) -> MatchTable:
        """Match a whole graph."""
        return self._with(MatchTable(Map(), Map(), Map()), graph, dict.fromkeys(graph.order, -1), graph.order)

    def updated(self, table: MatchTable, graph: Graph, change: Change) -> MatchTable:
        """Return the table of a graph, from the `table` of the graph before the `change`."""
        # Weights that many layers share got other readers, which no match asks for of what is constant.
        running = {identifier for identifier in change.touched if not graph.nodes[identifier].constant}
        near = _distances(graph, running, self._rules.largest_depth)
        dirty = change.touched.union(change.removed)

        # First roots of joint matches to look for again: of matches with a changed node, and of any that a changed node
        # may join as one of their roots.
        stale: set[int] = set()
        for places in table.joint.values():
            for nodes, found in places.items():
                if not dirty.isdisjoint(nodes):
                    stale.update(match.nodes[0] for match in found)
        for identifier in near:
            for descent, ascent in self._rules.relations.get(graph.nodes[identifier].op, ()):
                anchor = descend(graph, identifier, descent)
                if anchor is not None:
                    stale.update(climb(graph, anchor, ascent))

        return self._with(self._without(table, change.removed, near, stale), graph, near, stale)

    def _without(
        self, table: MatchTable, removed: Iterable[int], near: Mapping[int, int], stale: Set[int]
    ) -> MatchTable:
        """Drop the matches at removed roots, those that reach as deep as the change, and joint ones at stale roots."""
        rules_at, single, joint = table.rules_at.mutate(), _Draft(table.single), _Draft(table.joint)
        # A removed root counts as at distance -1: all its matches go.
        for root, distance in {**dict.fromkeys(removed, -1), **near}.items():
            rules = rules_at.pop(root, ())
            for rule in rules:
                if self._rules.depth[rule] > distance:
                    del single.of(rule)[root]
            kept = tuple(rule for rule in rules if self._rules.depth[rule] <= distance)
            if kept:
                rules_at[root] = kept

        for rule, places in table.joint.items():
            for nodes, found in places.items():
                if not stale.isdisjoint(nodes):
                    joint.put(rule, nodes, [match for match in found if match.nodes[0] not in stale])
        return MatchTable(rules_at.finish(), single.finish(), joint.finish())

    def _with(
        self, table: MatchTable, graph: Graph, single_roots: Mapping[int, int], joint_roots: Iterable[int]
    ) -> MatchTable:
        """Add the matches at `single_roots`, of rules deeper than the number given, and joint ones at `joint_roots`."""
        rules_at, single, joint = table.rules_at.mutate(), _Draft(table.single), _Draft(table.joint)
        for root, distance in single_roots.items():
            found = tuple(self._single.at(graph, root, deeper_than=distance))
            for rule, match in found:
                single.add(rule, root, match)
            if found:
                rules_at[root] = tuple(dict.fromkeys((*rules_at.get(root, ()), *(rule for rule, _ in found))))

        for root in joint_roots:
            if root in graph.nodes:
                for rule, match in self._joint.at(graph, root):
                    joint.add(rule, frozenset(match.nodes), match)
        return MatchTable(rules_at.finish(), single.finish(), joint.finish())

    def count(self, table: MatchTable, rule: int) -> int:
        """Count the matches that `listed` lists, without sorting them."""
        if rule in self._rules.symmetric:
            return len(table.joint.get(rule, ()))
        found = table.joint[rule].values() if rule in table.joint else table.single.get(rule, _NOWHERE).values()
        return sum(map(len, found))

    def listed(self, table: MatchTable, graph: Graph, rule: int) -> tuple[Match, ...]:
        """List a rule's matches by the places of their roots in the graph's order, then of the nodes inside.

        A symmetric rule has one match for the same nodes, with the roots in the graph's order.
        """
        if rule not in table.joint and rule not in table.single:
            return ()
        position = graph.positions()
        if rule not in self._rules.roots:
            single = table.single.get(rule, _NOWHERE)
            return tuple(match for root in sorted(single, key=position.__getitem__) for match in single[root])

        by_place = _by_place(position, self._rules.roots[rule])
        joint = (sorted(found, key=by_place) for found in table.joint.get(rule, _NOWHERE).values())
        kept = (match for found in joint for match in (found[:1] if rule in self._rules.symmetric else found))
        return tuple(sorted(kept, key=by_place))


class _Draft(Generic[Place]):
    """A table of matches being changed: a rule's map is copied when it is first written to."""

    def __init__(self, by_rule: _ByRule[Place]) -> None:
        self._before: _ByRule[Place] = by_rule
        self._drafts: dict[int, MapMutation[Place, tuple[Match, ...]]] = {}

    def of(self, rule: int) -> MapMutation[Place, tuple[Match, ...]]:
        if rule not in self._drafts:
            self._drafts[rule] = self._before.get(rule, _NOWHERE).mutate()
        return self._drafts[rule]

    def finish(self) -> _ByRule[Place]:
        return self._before.update({rule: draft.finish() for rule, draft in self._drafts.items()})

    def add(self, rule: int, place: Place, match: Match) -> None:
        self.of(rule)[place] = (*self.of(rule).get(place, ()), match)

    def put(self, rule: int, place: Place, matches: Sequence[Match]) -> None:
        if matches:
            self.of(rule)[place] = tuple(matches)
        else:
            self.of(rule).pop(place)


def _by_place(position: Sequence[int], roots: int) -> Callable[[Match], tuple[list[int], list[int]]]:
    """Make the key that sorts matches of so many roots."""

    def key(match: Match) -> tuple[list[int], list[int]]:
        places = [position[node] for node in match.nodes]
        return places[:roots], sorted(places[roots:])

    return key


def _relations(variants: Sequence[Variant]) -> Mapping[str, set[tuple[tuple[int, ...], tuple[str, ...]]]]:
    """Map the operator of each root to its ways down to the anchor and up again to the first root."""
    related: dict[str, set[tuple[tuple[int, ...], tuple[str, ...]]]] = defaultdict(set)
    for variant in variants:
        for root, descent in zip(variant.roots, variant.descents, strict=True):
            related[root.op].add((descent, variant.ascents[0]))
    return related


def _distances(graph: Graph, start: Set[int], limit: int) -> dict[int, int]:
    """Map nodes to the least number of steps to them from one of `start` along consumers, below `limit`."""
    distances = dict.fromkeys(start, 0)
    frontier = list(distances)
    for distance in range(1, limit):
        readers = dict.fromkeys(reader for node in frontier for reader in graph.consumers[node])
        frontier = [reader for reader in readers if reader not in distances]
        distances.update(dict.fromkeys(frontier, distance))
    return distances
