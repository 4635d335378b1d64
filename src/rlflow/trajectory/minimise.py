"""Shorten a trajectory that ends in a wrong graph to the steps that matter.

By delta debugging (`rlflow.delta_debugging`).

A step is recorded as a rule and the number of one of its matches. Without the steps before it that match has another
number, or does not exist. So each step is remembered by the values that it replaced (`_Place`), and values are
identified in a way that does not depend on the steps that were left out (`_Identity`). For example, "step 3 applied
rule r to the value that step 1 added" is found again in a walk of steps 1 and 3, and cannot be taken without step 1.

The invariant: the result is a trajectory that replays from the same graph to a wrong end, and without any one of its
steps the end is right or the others cannot be taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from rlflow.delta_debugging import smallest_failing
from rlflow.errors import ReplayError
from rlflow.ir.graph import Graph
from rlflow.ir.node import Ref
from rlflow.ir.structural_hash import structural_hash
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule
from rlflow.trajectory.bisect import IsWrong
from rlflow.trajectory.record import Step, Trajectory
from rlflow.trajectory.replay import recorded_match

_Identity = frozenset[tuple[int, ...]]
"""Names of a value that do not depend on the other steps that were taken.

A value of the first graph is named by its node and index; one that a step added, by the number of the step, its place
among the nodes that the step added, and its index. A value that replaces another has the names of both.
"""

_NOT_PRICED = "none"


def minimise(graph: Graph, trajectory: Trajectory, rewriter: Rewriter, is_wrong: IsWrong) -> Trajectory:
    """The shortest trajectory found whose end `is_wrong`, made of steps of this one, in their order.

    Without any one of its steps, the end is not wrong or the others cannot be taken any more. The result is
    deterministic; its steps have no prices. `ReplayError` if the trajectory cannot be replayed or its end is not wrong.
    """
    places = _places(graph, trajectory, rewriter)

    def again(kept: Sequence[int]) -> _Walk | None:
        """Walk the steps of these numbers alone; None if one of them cannot be taken."""
        walk = _Walk.begin(graph, rewriter)
        for number in kept:
            match = walk.find(places[number])
            if match is None:
                return None
            walk = walk.take(number, match)
        return walk

    @cache
    def fails(kept: tuple[int, ...]) -> bool:
        walk = again(kept)
        return walk is not None and is_wrong(walk.graph)

    every = tuple(range(len(places)))
    if not fails(every):
        raise ReplayError("the trajectory ends in a graph that is not wrong: there is nothing to minimise")

    kept = () if fails(()) else smallest_failing(every, fails)
    shortest = again(kept)
    assert shortest is not None
    return replace(trajectory, start_runtime_ms=0.0, cost_model=_NOT_PRICED, steps=shortest.steps)


@dataclass(frozen=True)
class _Place:
    """The place where a step was taken: the values it replaced, and the values of its rule's variables."""

    rule: Rule
    roots: tuple[_Identity, ...]
    bindings: Mapping[str, _Identity]


@dataclass(frozen=True)
class _Walk:
    """A graph on the way, the steps that led to it, and the identities of its values.

    identities: of values whose identity is not simply their own node and index. first_new: the first node number that
    the first graph does not have.
    """

    graph: Graph
    rewriter: Rewriter
    steps: tuple[Step, ...]
    identities: Mapping[Ref, _Identity]
    first_new: int

    @classmethod
    def begin(cls, graph: Graph, rewriter: Rewriter) -> _Walk:
        return cls(graph, rewriter, (), {}, graph.next_id)

    def identity(self, ref: Ref) -> _Identity:
        own = frozenset({tuple(ref)}) if ref.node < self.first_new else frozenset()
        return self.identities.get(ref, own)

    def place(self, match: Match) -> _Place:
        bindings = {name: self.identity(ref) for name, ref in match.bindings.items()}
        return _Place(match.rule, tuple(map(self.identity, match.roots)), bindings)

    def find(self, place: _Place) -> Match | None:
        """The match that replaces the same values; of several, the one most of whose variables have the same values."""

        def replaces_the_same(match: Match) -> bool:
            roots = zip(place.roots, map(self.identity, match.roots), strict=False)
            return all(not wanted.isdisjoint(root) for wanted, root in roots)

        def agreement(match: Match) -> int:
            return sum(not place.bindings[name].isdisjoint(self.identity(ref)) for name, ref in match.bindings.items())

        matches = self.rewriter.matches(self.graph)[self.rewriter.rules.index(place.rule)]
        return max(filter(replaces_the_same, matches), key=agreement, default=None)

    def take(self, number: int, match: Match) -> _Walk:
        """The graph after the rewrite, which is step `number` wherever it is taken."""
        matches = self.rewriter.matches(self.graph)[self.rewriter.rules.index(match.rule)]
        child = self.rewriter.apply(self.graph, match)

        identities = {ref: identity for ref, identity in self.identities.items() if ref.node in child.nodes}
        added = child.edit.change.added if child.edit else ()
        for place, node in enumerate(added):
            for index in range(len(child.nodes[node].types)):
                identities[Ref(node, index)] = frozenset({(number, place, index)})

        # What is read in a value's stead has that value's names too.
        for value, substitute in _substitutes(self.graph, child, match):
            known = identities.get(substitute, self.identity(substitute))
            identities[substitute] = known | self.identity(value)

        step = Step(match.rule.id, matches.index(match), structural_hash(child), 0.0, 0.0)
        return _Walk(child, self.rewriter, (*self.steps, step), identities, self.first_new)


def _substitutes(parent: Graph, child: Graph, match: Match) -> Iterator[tuple[Ref, Ref]]:
    """Yield the match's roots and the values that are gone, each with the one that is read in `child` in its place.

    Those nearest to the outputs come first: a reader, too, may have been merged with another node.
    """
    removed = child.edit.change.removed if child.edit else ()
    gone = {Ref(node, index) for node in removed for index in range(len(parent.nodes[node].types))}.union(match.roots)
    position = parent.positions()
    read_instead: dict[Ref, Ref] = {}
    for value in sorted(gone, key=lambda ref: (-position[ref.node], ref)):
        substitute = _substitute(parent, child, value, read_instead)
        if substitute is not None:
            yield value, substitute
            if value.node not in match.nodes:
                read_instead[value] = substitute


def _substitute(parent: Graph, child: Graph, value: Ref, merged: Mapping[Ref, Ref]) -> Ref | None:
    """Return the value that is read in `child` where `value` was read in `parent`; None if nothing is."""
    if value in parent.outputs:
        return child.outputs[parent.outputs.index(value)]
    for reader in parent.consumers[value.node]:
        now = reader if reader in child.nodes else merged.get(Ref(reader), Ref(-1)).node
        if now in child.nodes and value in parent.nodes[reader].inputs:
            return child.nodes[now].inputs[parent.nodes[reader].inputs.index(value)]
    return None


def _places(graph: Graph, trajectory: Trajectory, rewriter: Rewriter) -> list[_Place]:
    """The places of all steps, as they were recorded."""
    walk, places = _Walk.begin(graph, rewriter), []
    for number, step in enumerate(trajectory.steps):
        match = recorded_match(walk.graph, rewriter, step, number + 1)
        places.append(walk.place(match))
        walk = walk.take(number, match)
        if walk.steps[-1].hash != step.hash:
            raise ReplayError(f"step {number + 1} led to graph {walk.steps[-1].hash} instead of {step.hash}")
    return places
