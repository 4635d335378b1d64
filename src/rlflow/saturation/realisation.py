"""A solution of an e-graph as rewrites, one after another, of the graph that the e-graph began with.

An e-graph knows that things are equal, and by which uses of rules. Every value of a graph on the way is an e-node of
it, which is found again by its operator and the classes of its operands. In

    y = Gather(MatMul(x, w))       whose class has also     y' = MatMul(x', w),  x' = Gather(x)

the value y becomes the chosen e-node y' by the use of a rule that leads from one to the other. If a use starts from
other forms of the operands than the graph has, these become what it needs first, and so on. Readers come before their
operands, so that what a reader needs of an operand is still there when its turn comes.

Every step goes through the rewriter: whatever comes out is a right trajectory, and what cannot be reached is told.
Invariant: rewriting never takes a value out of its class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from immutables import Map

from rlflow.ir.graph import Graph
from rlflow.ir.node import Ref
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.saturation.model_egraph import ClassId, ENodeId, ModelEGraph, Use


@dataclass(frozen=True)
class Realisation:
    """The steps taken, each with the graph after it, and the chosen applications that are in no form of the last."""

    steps: tuple[tuple[Location, Graph], ...]
    last: Graph
    missing: tuple[ENodeId, ...]
    place: object = None


@dataclass(frozen=True)
class _Place:
    """A graph on the way: the application that each node is, what became of values that were replaced, the steps."""

    graph: Graph
    applications: Map[int, ENodeId]
    now: Map[Ref, Ref]
    before: _Place | None = None
    location: Location | None = None

    def value(self, ref: Ref) -> Ref:
        """Return what is read now in place of a value."""
        while ref in self.now:
            ref = self.now[ref]
        return ref

    @property
    def steps(self) -> tuple[tuple[Location, Graph], ...]:
        backwards, place = [], self
        while place.before is not None and place.location is not None:
            backwards.append((place.location, place.graph))
            place = place.before
        return tuple(backwards[::-1])


def realise(
    start: Graph, egraph: ModelEGraph, chosen: Mapping[ClassId, ENodeId], rewriter: SharingRewriter
) -> Realisation:
    """Rewrite `start`, with which the e-graph began, until each value is the chosen application of its class."""
    return _Realiser(egraph, chosen, rewriter).realised(start)


class _Realiser:
    def __init__(self, egraph: ModelEGraph, chosen: Mapping[ClassId, ENodeId], rewriter: SharingRewriter) -> None:
        self.egraph = egraph
        self.rewriter = rewriter
        self.rule_index = {rule.id: index for index, rule in enumerate(rewriter.rules)}
        self.wanted = {egraph.find(c): self.enode(egraph.application(a), c) for c, a in chosen.items()}
        self.uses_of: dict[ENodeId, list[Use]] = {}
        for use in egraph.uses:
            for root in use.roots:
                self.uses_of.setdefault(egraph.find_node(root), []).append(use)
        self.distances: dict[ENodeId, dict[ENodeId, int]] = {}
        self.effort = 0
        self.log: list[str] = []

    def enode(self, application: ENodeId, member: ClassId) -> ENodeId:
        """Return the output of an application that is in this class."""
        member = self.egraph.find(member)
        return next(n for n in self.egraph.outputs_of(application) if self.egraph.find(n) == member)

    # Places

    def begin(self, start: Graph) -> _Place:
        # Before anything was united, a class was called by its e-node.
        applications = {ref.node: self.egraph.application(first) for ref, first in self.egraph.class_of.items()}
        return _Place(start, Map(applications), Map())

    def member(self, place: _Place, ref: Ref) -> ENodeId:
        """Return the e-node that a value is."""
        return place.applications[ref.node] + ref.index

    def class_of(self, place: _Place, ref: Ref) -> ClassId:
        return self.egraph.find(self.member(place, ref))

    def taken(self, place: _Place, location: Location, match: Match) -> _Place | None:
        """Take a step; None if it leads out of the e-graph."""
        self.effort += 1
        _, substitution = self.rewriter.edit(place.graph, match)
        graph = self.rewriter.apply(place.graph, match)
        applications = place.applications.mutate()
        for identifier in graph.edit.change.added if graph.edit else ():
            node = graph.nodes[identifier]
            operands = [self.egraph.find(applications[r.node] + r.index) for r in node.inputs if r is not None]
            known = self.egraph.known(node, operands)
            if known is None:
                return None
            applications[identifier] = known
        now = place.now.mutate()
        for old, new in substitution.items():
            now[old] = new
            now.pop(new, None)
        return _Place(graph, applications.finish(), now.finish(), place, location)

    # The search

    def realised(self, start: Graph) -> Realisation:
        place = self.begin(start)
        failed: set[ClassId] = set()
        while True:
            value = next((v for v in self.values(place) if self.is_open(place, v, failed)), None)
            if value is None:
                break
            self.effort = 0
            member = self.class_of(place, value)
            after = self.become(place, value, self.wanted[member], 6, frozenset())
            if after is None:
                failed.add(member)
            else:
                place = after
        missing = {self.egraph.application(self.wanted[m]) for m in failed}
        return Realisation(place.steps, place.graph, tuple(sorted(missing)), place)

    def values(self, place: _Place) -> Iterator[Ref]:
        """Yield all values that run and are read, readers before operands."""
        graph = place.graph
        for identifier in reversed(graph.order):
            for index in range(len(graph.nodes[identifier].types)):
                yield Ref(identifier, index)

    def is_open(self, place: _Place, value: Ref, failed: set[ClassId]) -> bool:
        member = self.class_of(place, value)
        return member in self.wanted and member not in failed and self.member(place, value) != self.wanted[member]

    def become(
        self, place: _Place, value: Ref, wanted: ENodeId, depth: int, busy: frozenset[tuple[ENodeId, ENodeId]]
    ) -> _Place | None:
        """Return a place where the value is the wanted e-node; None if no way was found."""
        value = place.value(value)
        current = self.member(place, value)
        if current == wanted:
            return place
        distances = self.distances_to(wanted)
        if current not in distances or (current, wanted) in busy or not depth or self.effort > 3000:
            return None
        busy = busy | {(current, wanted)}
        for _, _, use, output in sorted(self.candidates(place, value, current, distances), key=lambda c: c[:2]):
            after = self.used(place, value, use, depth - 1, busy)
            if after is not None:
                after = self.become(after, value, wanted, depth, busy)
                if after is not None:
                    return after
        return None

    def candidates(
        self, place: _Place, value: Ref, current: ENodeId, distances: Mapping[ENodeId, int]
    ) -> Iterator[tuple[int, int, Use, ENodeId | None]]:
        here = distances[current]
        for number, use in enumerate(self.uses_of.get(current, ())):
            for end in self.ends(use, current):
                there = 0 if end is None else distances.get(end, here)
                if there < here:
                    yield there, number, use, end
                    break

    def ends(self, use: Use, root: ENodeId) -> Iterator[ENodeId | None]:
        """Yield the e-nodes that a root becomes by a use; None for a variable, in whatever form it is."""
        for r, member in zip(use.roots, use.outputs, strict=True):
            if self.egraph.find_node(r) == root:
                yield self.end(use, member)

    def end(self, use: Use, member: ClassId) -> ENodeId | None:
        """Return the output of the target in this class; None if that is a variable."""
        member = self.egraph.find(member)
        for made in reversed(use.made):
            application = self.egraph.application(made)
            for output in self.egraph.outputs_of(application):
                if self.egraph.find(output) == member:
                    return output
        return None

    def distances_to(self, wanted: ENodeId) -> dict[ENodeId, int]:
        """Return the least number of uses from each e-node of a class to the wanted one."""
        if wanted not in self.distances:
            backwards: dict[ENodeId, list[ENodeId]] = {}
            collapsing = []
            for n in self.egraph.members(wanted):
                for use in self.uses_of.get(n, ()):
                    for end in self.ends(use, n):
                        if end is None:
                            collapsing.append(n)
                        else:
                            backwards.setdefault(end, []).append(n)
            found, frontier, steps = {wanted: 0}, [wanted], 0
            while frontier:
                steps += 1
                reached = [n for end in frontier for n in backwards.get(end, ())]
                if steps == 1:
                    reached += collapsing
                frontier = [n for n in dict.fromkeys(reached) if n not in found]
                found.update(dict.fromkeys(frontier, steps))
            self.distances[wanted] = found
        return self.distances[wanted]

    def used(
        self, place: _Place, value: Ref, use: Use, depth: int, busy: frozenset[tuple[ENodeId, ENodeId]]
    ) -> _Place | None:
        """Return the place after one use of a rule at a value, whose operands are made what it needs."""
        roots = {self.egraph.find_node(root) for root in use.roots}
        anchors = [value]
        for root in sorted(roots - {self.member(place, value)}):
            other = self.somewhere(place, root)
            if other is None:
                return None
            after = self.become(place, other, root, depth, busy)
            if after is None:
                return None
            place = after
            anchors.append(other)
        inner = [self.egraph.application(a) for a in use.source]
        for anchor in anchors:
            after = self.prepared(place, anchor, inner, depth, busy)
            if after is None:
                return None
            place = after
        found = self.match_of(place, [place.value(a) for a in anchors], use)
        if found is None:
            after = self.unified(place, anchors, use, inner, depth, busy)
            if after is None:
                return None
            place = after
            found = self.match_of(place, [place.value(a) for a in anchors], use)
        if found is None:
            self.log.append(f"no match for {use.rule.id} although prepared")
            return None
        return self.taken(place, *found)

    def somewhere(self, place: _Place, root: ENodeId) -> Ref | None:
        """Return a value of the class of an e-node, the e-node itself if it is there."""
        member = self.egraph.find(root)
        there = [v for v in self.values(place) if self.class_of(place, v) == member]
        return min(there, key=lambda v: self.member(place, v) != root, default=None)

    def prepared(
        self, place: _Place, value: Ref, inner: Sequence[ENodeId], depth: int, busy: frozenset[tuple[ENodeId, ENodeId]]
    ) -> _Place | None:
        """Make the operands of a value, and theirs, the applications that a use matched."""
        value = place.value(value)
        for ref in place.graph.nodes[value.node].inputs:
            if ref is None or place.graph.nodes[ref.node].constant:
                continue
            operand = place.value(ref)
            member = self.class_of(place, operand)
            wanted = [n for a in inner for n in self.egraph.outputs_of(a) if self.egraph.find(n) == member]
            if not wanted:
                continue
            if self.member(place, operand) not in wanted:
                after = self.become(place, operand, wanted[0], depth, busy)
                if after is None:
                    return None
                place = after
            after = self.prepared(place, operand, inner, depth, busy)
            if after is None:
                return None
            place = after
        return place

    def unified(
        self,
        place: _Place,
        anchors: Sequence[Ref],
        use: Use,
        inner: Sequence[ENodeId],
        depth: int,
        busy: frozenset[tuple[ENodeId, ENodeId]],
    ) -> _Place | None:
        """Make values of one variable that are in several forms the same."""
        variables = {self.egraph.find(c) for c in use.variables.values()}
        firsts: dict[ClassId, Ref] = {}
        for ref in self.inside(place, [place.value(a) for a in anchors], inner):
            ref = place.value(ref)
            member = self.class_of(place, ref)
            if member not in variables or place.graph.nodes[ref.node].constant:
                continue
            first = place.value(firsts.setdefault(member, ref))
            if ref != first:
                after = self.same(place, first, ref, depth, busy)
                if after is None:
                    return None
                place = after
        return place

    def inside(self, place: _Place, values: Sequence[Ref], inner: Sequence[ENodeId]) -> Iterator[Ref]:
        """Yield the operands of the applications that a use matched below these values."""
        for value in values:
            for ref in place.graph.nodes[value.node].inputs:
                if ref is not None:
                    yield ref
                    if place.applications[ref.node] in inner:
                        yield from self.inside(place, [ref], inner)

    def same(
        self, place: _Place, one: Ref, other: Ref, depth: int, busy: frozenset[tuple[ENodeId, ENodeId]]
    ) -> _Place | None:
        """Make two values of a class one."""
        one, other = place.value(one), place.value(other)
        if one == other:
            return place
        after = self.become(place, other, self.member(place, one), depth, busy)
        if after is None:
            after = self.become(place, one, self.member(place, other), depth, busy)
        if after is None:
            return None
        place = after
        one, other = place.value(one), place.value(other)
        if one == other:
            return place
        pairs = zip(place.graph.nodes[one.node].inputs, place.graph.nodes[other.node].inputs, strict=True)
        for first, second in pairs:
            if first is None or second is None or self.class_of(place, place.value(first)) != self.class_of(place, place.value(second)):
                return None
            after = self.same(place, first, second, depth, busy)
            if after is None:
                return None
            place = after
        return place if place.value(one) == place.value(other) else None

    def match_of(self, place: _Place, anchors: Sequence[Ref], use: Use) -> tuple[Location, Match] | None:
        """Return the match that is this use, with its location."""
        rule = self.rule_index.get(use.rule.id)
        if rule is None:
            return None
        variables = {name: self.egraph.find(c) for name, c in use.variables.items()}
        for location, match in enumerate(self.rewriter.matches(place.graph)[rule]):
            if set(anchors) == set(match.roots):
                if all(self.class_of(place, ref) == variables[name] for name, ref in match.bindings.items()):
                    return Location(rule, location), match
        return None
