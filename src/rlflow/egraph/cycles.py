"""The filter of cycles of Tensat (Yang et al., Equality Saturation for Tensor Graph Superoptimization, MLSys 2021).

Uniting classes can make a value part of its own operands: if Relu(Relu(x)) = Relu(x), an e-graph has Relu(c) in class
c. An extraction must not choose such members around a circle. The filter sees to it that it cannot:

    before a pass    matches whose target would read what their own root is needed for are refused
    after a pass     for each circle that came about nevertheless, the member of it that was added last is filtered

Invariant, after `break_cycles`: no class is among its own operands, directly or through others.
"""

from __future__ import annotations

from collections.abc import Iterator

from rlflow.egraph.egraph import ClassId, ENodeId
from rlflow.egraph.matching import EMatch
from rlflow.egraph.model_egraph import ModelEGraph


class CycleFilter:
    """The classes that each class of an e-graph without cycles is computed from, as it was last rebuilt.

    A set of classes is a number with one bit for each.
    """

    def __init__(self, egraph: ModelEGraph) -> None:
        self._needed: dict[ClassId, int] = {}
        for value in _operands_first(egraph):
            needed = 0
            for child in _operands(egraph, value):
                needed |= self._needed[child] | 1 << child
            self._needed[value] = needed

    def admits(self, egraph: ModelEGraph, match: EMatch) -> bool:
        """Return False if the target reads one of the match's roots, or anything that is computed from one."""
        roots = [egraph.find(root) for root in match.roots]
        values = list(match.variables.values())
        read = {ref.node for node in match.target.nodes for ref in node.inputs if ref is not None}
        variables = (egraph.find(value) for place, value in enumerate(values) if place in read)
        return not any(root == value or self._needed.get(value, 0) >> root & 1 for value in variables for root in roots)


def break_cycles(egraph: ModelEGraph) -> int:
    """Filter applications until no class is among its own operands, and return how many there were."""
    before = len(egraph.filtered)
    while doomed := list(dict.fromkeys(_last_added(egraph, cycle) for cycle in _cycles(egraph))):
        for application in doomed:
            egraph.filter(application)
    return len(egraph.filtered) - before


def _last_added(egraph: ModelEGraph, cycle: list[ENodeId]) -> ENodeId:
    """Return the last application of a cycle of e-nodes; one that is the only way to its class only if all are."""
    others = [number for number in cycle if len(egraph.members(number)) > 1]
    return egraph.application(max(others or cycle))


def _cycles(egraph: ModelEGraph) -> Iterator[list[ENodeId]]:
    """Yield a cycle of e-nodes for each step of a walk that leads back to where the walk came through."""
    done: set[ClassId] = set()
    for start in egraph.classes():
        # The e-nodes by which the walk has come to each class on its way, and the steps from there still to take.
        way: dict[ClassId, ENodeId] = {}
        stack = [] if start in done else [(start, _steps(egraph, start))]
        while stack:
            value, steps = stack[-1]
            step = next(steps, None)
            if step is None:
                stack.pop()
                done.add(value)
                way.pop(value, None)
                continue
            member, child = step
            way[value] = member
            if child in way:
                on_way = list(way)
                yield [way[passed] for passed in on_way[on_way.index(child) :]]
            elif child not in done:
                stack.append((child, _steps(egraph, child)))


def _steps(egraph: ModelEGraph, value: ClassId) -> Iterator[tuple[ENodeId, ClassId]]:
    """Yield each member of a class with each class that it reads."""
    for member in tuple(egraph.members(value)):
        for child in dict.fromkeys(egraph.node(member).children):
            yield member, child


def _operands(egraph: ModelEGraph, value: ClassId) -> dict[ClassId, None]:
    return dict.fromkeys(child for _, child in _steps(egraph, value))


def _operands_first(egraph: ModelEGraph) -> Iterator[ClassId]:
    """Yield all classes of an e-graph without cycles, each after those that it is computed from."""
    done: set[ClassId] = set()
    stack = egraph.classes()[::-1]
    while stack:
        value = stack[-1]
        waiting = [] if value in done else [child for child in _operands(egraph, value) if child not in done]
        stack += waiting
        if not waiting:
            stack.pop()
            if value not in done:
                done.add(value)
                yield value
