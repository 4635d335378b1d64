"""Derivations of one form of a value from another: uses of rules, one after another, within a class of an e-graph.

A use of x + 0 => x leads from the e-node x + 0 to whatever x is. Most lead from one e-node of a class to another.

    derivations = Derivations(egraph, goals)    # goals: the e-node that each class should become
    derivations.lengths(goal)[member]           # the uses that lead from an e-node to the goal; no entry if none do
    derivations.uses(member)                    # the uses that start from an e-node

Uses have a direction: few rules undo what another does. So a use may make operands from which their own goals cannot be
derived. Each such *dead end* makes a derivation longer than any without one. Dead ends that were met can be noted, and
are avoided the next time.

All constant forms of a value are equally good: a derivation of any of them is one of the goal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import chain

from rlflow.egraph.egraph import ClassId, ENodeId
from rlflow.egraph.model_egraph import ModelEGraph, Use

_DEAD_END = 1000
"""The length that a dead end adds to a derivation; a use has length 1."""

_Backwards = Mapping[ENodeId | None, Sequence[tuple[ENodeId, Use]]]
"""Where a use leads (None: to a variable in any form, or to a constant) -> the e-nodes from which it leads there."""


class Derivations:
    """The derivations in an e-graph that does not change any more."""

    def __init__(self, egraph: ModelEGraph, goals: Mapping[ClassId, ENodeId]) -> None:
        self._egraph = egraph
        self._goals = goals
        self._uses: dict[ENodeId, list[Use]] = defaultdict(list)
        self._starts: dict[ClassId, dict[ENodeId, None]] = defaultdict(dict)
        for use in chain(egraph.uses, egraph.idle_uses):
            for root in dict.fromkeys(map(egraph.find_node, use.roots)):
                self._uses[root].append(use)
                self._starts[egraph.find(root)][root] = None
        self._avoided: set[ENodeId] = set()
        self._within: dict[ClassId, _Backwards] = {}
        self._reach: dict[ENodeId, set[ENodeId]] = {}
        self._lengths: dict[ENodeId, Mapping[ENodeId, int]] = {}

    def uses(self, member: ENodeId) -> Sequence[Use]:
        """Return the uses one of whose roots is this e-node, in the order of time."""
        return self._uses.get(member, ())

    def avoid(self, dead_ends: Sequence[ENodeId]) -> None:
        """Note e-nodes that could not be turned into the goals of their classes."""
        self._avoided.update(dead_ends)
        self._lengths.clear()

    def ends(self, use: Use, root: ENodeId) -> Iterator[ENodeId | None]:
        """Yield the e-nodes that an e-node becomes by a use; None where that is a variable or a constant."""
        for number, output in zip(use.roots, use.outputs, strict=True):
            if self._egraph.find_node(number) == root:
                yield self._end(use, self._egraph.find(output))

    def _end(self, use: Use, output: ClassId) -> ENodeId | None:
        made = (number for application in reversed(use.made) for number in self._outputs(application))
        end = next((number for number in made if self._egraph.find(number) == output), None)
        return None if end is None or self._egraph.node(end).node.constant else end

    def _outputs(self, application: ENodeId) -> range:
        return self._egraph.outputs_of(self._egraph.application(application))

    def lengths(self, goal: ENodeId) -> Mapping[ENodeId, int]:
        """Return the length of the shortest derivation of `goal` from each e-node of its class, 0 from itself."""
        if goal not in self._lengths:
            backwards, lengths = self._backwards(goal), dict[ENodeId, int]()
            waiting = [(0, goal)]
            while waiting:
                length, end = heappop(waiting)
                if end in lengths:
                    continue
                lengths[end] = length
                before = chain(backwards.get(end, ()), backwards.get(None, ()) if end == goal else ())
                for start, use in before:
                    heappush(waiting, (length + 1 + self.detour(use), start))
            self._lengths[goal] = lengths
        return self._lengths[goal]

    def detour(self, use: Use) -> int:
        """Return the length that the dead ends of a use add to a derivation."""
        count = 0
        for number in chain.from_iterable(map(self._outputs, use.made)):
            goal = self._goals.get(self._egraph.find(number))
            if goal is not None and number != goal and not self._egraph.node(number).node.constant:
                count += number in self._avoided or number not in self._reaching(goal)
        return _DEAD_END * count

    def _reaching(self, goal: ENodeId) -> set[ENodeId]:
        """Return the e-nodes from which the goal can be derived."""
        if goal not in self._reach:
            backwards = self._backwards(goal)
            reaching, stack = {goal}, [goal]
            stack += (start for start, _ in backwards.get(None, ()))
            while stack:
                end = stack.pop()
                reaching.add(end)
                stack += (start for start, _ in backwards.get(end, ()) if start not in reaching)
            self._reach[goal] = reaching
        return self._reach[goal]

    def _backwards(self, member: ENodeId) -> _Backwards:
        value = self._egraph.find(member)
        if value not in self._within:
            backwards: dict[ENodeId | None, list[tuple[ENodeId, Use]]] = defaultdict(list)
            for start in self._starts[value]:
                for use in self._uses[start]:
                    for end in self.ends(use, start):
                        backwards[end].append((start, use))
            self._within[value] = backwards
        return self._within[value]
