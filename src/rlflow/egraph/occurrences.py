"""The occurrences of rules' sources in an e-graph: the discrimination tree, walked over classes instead of values.

In a graph a value has one node, in an e-graph a class has many, so that each application of a source is looked for
among all members of a class:

    Relu(Add(x, y))     at application 7, Relu on class 5 = {Add(1, 2), Add(1, 3), Mul(1, 4)}
    enter Relu (7), enter Add (5), bind x = 1, y = 2;   enter Relu (7), enter Add (6), bind x = 1, y = 3

Invariant: an occurrence names the application that each application of the source matched, and the class of each
variable. Opaque applications, and those that leave operands out, match nothing but variables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rlflow.egraph.egraph import ClassId, ENodeId
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.ir.node import LEAVES, Attributes, AttributeValue
from rlflow.rules.matching.discrimination_tree import (
    Again,
    Climb,
    Enter,
    Number,
    Place,
    bound,
    may_be_number,
    numbered,
)


class Occurrence(NamedTuple):
    """An occurrence of a variant's source in an e-graph.

    `variables` and `attributes` are those of its variables and attribute variables, and `applications` those that its
    applications matched, each in the order of their first occurrence in the source.
    """

    variant: int
    variables: tuple[ClassId, ...]
    applications: tuple[ENodeId, ...]
    attributes: tuple[AttributeValue, ...]


class _Member(NamedTuple):
    """An e-node that a source can match: one output of an application of a known operator with all its operands."""

    op: str
    output: int
    application: ENodeId
    attributes: Attributes
    operands: tuple[ClassId, ...]


class _Ahead(NamedTuple):
    """A linked list of classes that are still to be tested, each with the application that reads it."""

    value: ClassId
    reader: _Member
    rest: _Ahead | None


class _State(NamedTuple):
    """The state of a walk: its point in the tree, the classes ahead, and everything bound so far."""

    place: Place
    ahead: _Ahead | None
    variables: tuple[ClassId, ...] = ()
    applications: tuple[ENodeId, ...] = ()
    attributes: tuple[AttributeValue, ...] = ()


class Walk:
    """Walks over an e-graph as it was last rebuilt; it remembers what it looks up, and is of no use after a change."""

    def __init__(self, egraph: ModelEGraph, roots: Collection[ENodeId]) -> None:
        """Make walks whose roots are all among these."""
        self._egraph = egraph
        self._roots = roots
        self._members: dict[ClassId, tuple[_Member, ...]] = {}
        self._readers: dict[tuple[ClassId, str], tuple[ENodeId, ...]] = {}

    def occurrences(self, start: Place, root: ENodeId, deeper_than: int = -1) -> list[Occurrence]:
        """Return the occurrences with their first root at this application, of variants deeper than this.

        They are in the order of the variants in the tree that begins at `start`.
        """
        found: list[Occurrence] = []
        stack = list(self._at_root(_State(start, None), root))
        while stack:
            state = stack.pop()
            place, ahead = state.place, state.ahead
            if place.depth <= deeper_than:  # nothing from here on is deep enough
                continue
            if ahead is None:
                found.extend(Occurrence(variant, *state[2:]) for variant in place.ends)
                stack.extend(self._at_further_roots(state))
                continue
            if place.variables:
                stack.extend(_as_variable(state, ahead))
            if place.operators:
                for member in self._of(ahead.value):
                    if member.op in place.operators:
                        stack.extend(self._entered(place.operators[member.op], state, member, ahead.rest))
            if place.others:
                stack.extend(self._as_known(state, ahead))
        return sorted(found, key=lambda occurrence: occurrence.variant)

    def _of(self, value: ClassId) -> tuple[_Member, ...]:
        """Return the members of a class that a source can match."""
        known = self._members.get(value)
        if known is None:
            members = map(self._member, self._egraph.members(value))
            known = self._members[value] = tuple(member for member in members if member is not None)
        return known

    def _member(self, number: ENodeId) -> _Member | None:
        node, output, children = self._egraph.node(number)
        if node.op in LEAVES or node.is_opaque or len(children) < len(node.inputs):
            return None
        return _Member(node.op, output, number - output, node.attributes, children)

    def _at_root(self, state: _State, root: ENodeId) -> Iterator[_State]:
        """Continue at this very application, which is not constant: no other one will do."""
        member = self._member(root)
        if member is not None and not self._egraph.is_constant(root) and member.op in state.place.operators:
            yield from self._entered(state.place.operators[member.op], state, member, None)

    def _entered(
        self, operators: Iterable[tuple[Enter, Place]], state: _State, member: _Member, rest: _Ahead | None
    ) -> Iterator[_State]:
        """Pass the class ahead as this member of it; the operands of that then come first."""
        for enter, further in operators:
            if enter.output != member.output or enter.arity != len(member.operands):
                continue
            attributes = bound(enter.attributes, member.attributes, state.attributes)
            if attributes is not None:
                ahead = self._in_front(member, enter.number_at, rest)
                applications = (*state.applications, member.application)
                yield _State(further, ahead, state.variables, applications, attributes)

    def _in_front(self, reader: _Member, number_at: int | None, rest: _Ahead | None) -> _Ahead | None:
        """Put the operands in front of the classes ahead, a number in its place."""
        operands: Sequence[ClassId] = reader.operands
        if number_at is not None and not self._egraph.is_constant(operands[number_at]):
            operands = operands[::-1]
        for operand in reversed(operands):
            rest = _Ahead(operand, reader, rest)
        return rest

    def _as_known(self, state: _State, ahead: _Ahead) -> Iterator[_State]:
        """Pass the class ahead as a number, or as that of an application that was entered before."""
        place, _, variables, applications, attributes = state
        for test, further in place.others:
            if isinstance(test, Number):
                with_number = self._as_number(test, ahead, attributes)
                if with_number is not None:
                    yield _State(further, ahead.rest, variables, applications, with_number)
            elif self._is_output(ahead.value, applications[test.application], test):
                yield _State(further, ahead.rest, variables, applications, attributes)

    def _is_output(self, value: ClassId, application: ENodeId, test: Again) -> bool:
        outputs = self._egraph.outputs_of(application)
        return test.output < len(outputs) and self._egraph.find(outputs[test.output]) == value

    def _as_number(
        self, test: Number, ahead: _Ahead, attributes: tuple[AttributeValue, ...]
    ) -> tuple[AttributeValue, ...] | None:
        """Return the attribute variables if the class ahead has the wanted number, else None."""
        value, reader, _ = ahead
        present = self._egraph.number(value)
        others = (self._egraph.type_of(other) for other in reader.operands if other != value)
        if present is None or not may_be_number(self._egraph.type_of(value), others):
            return None
        return numbered(present, test.value, attributes)

    def _at_further_roots(self, state: _State) -> Iterator[_State]:
        """Continue with each application that may be the next root."""
        for up, further in state.place.climbs:
            taken = {state.applications[root] for root in up.roots}
            for application in self._climbed(up, state.variables[up.variable]):
                if application in self._roots and application not in taken:
                    yield from self._at_root(state._replace(place=further), application)

    def _climbed(self, up: Climb, start: ClassId) -> list[ENodeId]:
        """Return the applications that are reached from a class through readers of these operators in turn."""
        *below, last = up.path
        reached = [start]
        for op in below:
            readers = dict.fromkeys(reader for value in reached for reader in self._reading(value, op))
            outputs = (self._egraph.find(output) for reader in readers for output in self._egraph.outputs_of(reader))
            reached = list(dict.fromkeys(outputs))
        return list(dict.fromkeys(reader for value in reached for reader in self._reading(value, last)))

    def _reading(self, value: ClassId, op: str) -> tuple[ENodeId, ...]:
        known = self._readers.get((value, op))
        if known is None:
            readers = (reader for reader in self._egraph.readers(value) if reader not in self._egraph.filtered)
            known = self._readers[value, op] = tuple(r for r in readers if self._egraph.node(r).node.op == op)
        return known


def _as_variable(state: _State, ahead: _Ahead) -> Iterator[_State]:
    """Pass the class ahead as a variable."""
    place, _, variables, applications, attributes = state
    for variable, further in place.variables:
        if variable == len(variables):
            yield _State(further, ahead.rest, (*variables, ahead.value), applications, attributes)
        elif variables[variable] == ahead.value:
            yield _State(further, ahead.rest, variables, applications, attributes)


def distances(egraph: ModelEGraph, changed: Iterable[ClassId], limit: int) -> Mapping[ENodeId, int]:
    """Map applications to the least number of operands down to a changed class, from 1 to `limit`."""
    found: dict[ENodeId, int] = {}
    frontier = list(changed)
    for distance in range(1, limit + 1):
        readers = dict.fromkeys(reader for value in frontier for reader in egraph.readers(value))
        fresh = [reader for reader in readers if reader not in found]
        found.update(dict.fromkeys(fresh, distance))
        frontier = list(dict.fromkeys(egraph.find(output) for reader in fresh for output in egraph.outputs_of(reader)))
    return found
