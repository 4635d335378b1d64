"""Ways from one form of a value to another: uses of rules, one after another, within a class of an e-graph.

A use of x + 0 => x leads from the e-node x + 0 to whatever x is. Most lead from one e-node of a class to another.

    ways = Ways(egraph, goals)                  # goals: the e-node that each class shall become
    ways.lengths(goal)[member]                  # how long the way from an e-node is; no entry if there is none
    ways.uses(member)                           # the uses that start from an e-node

Uses have a direction: what a rule turns into something else is seldom turned back. So a use may make operands from
which no way leads to what they shall become. Each such *dead end* makes a way longer than any without one. Dead ends
that are met on the way can be told, so that they are avoided the next time.

Of a constant value, one constant is as good as another: a way that leads to any leads to the goal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import chain

from rlflow.egraph.model_egraph import ClassId, ENodeId, ModelEGraph, Use

_DEAD_END = 1000
"""The length that a dead end adds to a way; a use has length 1."""

_Backwards = Mapping[ENodeId | None, Sequence[tuple[ENodeId, Use]]]
"""Where a use leads (None: to a variable in any form, or to a constant) -> the e-nodes from which it leads there."""


class Ways:
    """The ways in an e-graph that does not change any more."""

    def __init__(self, egraph: ModelEGraph, goals: Mapping[ClassId, ENodeId]) -> None:
        self._egraph = egraph
        self._goals = goals
        self._uses: dict[ENodeId, list[Use]] = defaultdict(list)
        self._starts: dict[ClassId, dict[ENodeId, None]] = defaultdict(dict)
        for use in chain(egraph.uses, egraph.idle_uses):
            for root in dict.fromkeys(map(egraph.find_node, use.roots)):
                self._uses[root].append(use)
                self._starts[egraph.find(root)][root] = None
        self._told: set[ENodeId] = set()
        self._within: dict[ClassId, _Backwards] = {}
        self._reach: dict[ENodeId, set[ENodeId]] = {}
        self._lengths: dict[ENodeId, Mapping[ENodeId, int]] = {}

    def uses(self, member: ENodeId) -> Sequence[Use]:
        """Return the uses one of whose roots is this e-node, in the order of time."""
        return self._uses.get(member, ())

    def tell(self, dead_ends: Sequence[ENodeId]) -> None:
        """Note e-nodes that could not be turned into what their classes shall become."""
        self._told.update(dead_ends)
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
        """Return the length of the shortest way from each e-node of a class to `goal`, 0 from there."""
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
        """Return what the dead ends that a use makes add to the length of a way."""
        count = 0
        for number in chain.from_iterable(map(self._outputs, use.made)):
            goal = self._goals.get(self._egraph.find(number))
            if goal is not None and number != goal and not self._egraph.node(number).node.constant:
                count += number in self._told or number not in self._reaching(goal)
        return _DEAD_END * count

    def _reaching(self, goal: ENodeId) -> set[ENodeId]:
        """Return the e-nodes from which any way leads to the goal."""
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
