"""A discrimination tree: it finds the occurrences of the sources of many rules in one walk down from a node.

Theorem provers index their rewrite rules like this (McCune, Journal of Automated Reasoning 9, 1992). Every source is
written out as a list of tests, in the order in which a walk down from its root meets its parts; variables and
applications are numbered as they come. Sources that begin with the same tests share them:

    Relu(Add(x, y))     enter Relu, enter Add, bind 0, bind 1      -> an occurrence of the first
    Relu(Add(x, x))     enter Relu, enter Add, bind 0, bind 0      -> an occurrence of the second

share their first three tests. A source with further roots continues, at the end of its first one, by climbing from a
shared variable through consumers to the next root.

Invariant: a `_State` holds what its tests have passed, so that a test refers to earlier variables, applications and
attribute variables by number. A number is bound by the first test that has it; all later ones compare. The walk is the
inner loop of all rewriting: states are tuples, and a point in the tree looks up its tests by operator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from rlflow.errors import GraphError
from rlflow.ir.graph import Graph
from rlflow.ir.node import Attributes, AttributeValue, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.domain import FloatDomain
from rlflow.ops.reference import evaluate_value
from rlflow.rules import pattern
from rlflow.rules.matching.variants import Variant, number_at
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.plan import Instance, plan_of, run_plan


class Slot(NamedTuple):
    """An attribute variable, by its number."""

    number: int


class Bind(NamedTuple):
    """The test that binds a value to a variable, or compares it if the variable is bound."""

    variable: int


class Enter(NamedTuple):
    """The test that a value is an output of an application, whose operands are tested next.

    If the operator is commutative and one of its two operands is a number, `number_at` is the place of the number.
    """

    op: str
    output: int
    arity: int
    attributes: tuple[tuple[str, Any], ...]
    number_at: int | None


class Again(NamedTuple):
    """The test that a value is an output of an application that was entered before."""

    application: int
    output: int


class Number(NamedTuple):
    """The test that a value is a stored scalar: this number, or the value of the attribute variable."""

    value: float | Slot


class Climb(NamedTuple):
    """The test that a further root, none of those before, is reached from a variable through consumers on this path."""

    variable: int
    path: tuple[str, ...]
    roots: tuple[int, ...]


Test = Bind | Enter | Again | Number | Climb


class Occurrence(NamedTuple):
    """An occurrence of a variant's source in a graph.

    `values`, `nodes` and `attributes` are those of its variables, applications and attribute variables, each in the
    order of their first occurrence in the source.
    """

    variant: int
    values: tuple[Ref, ...]
    nodes: tuple[int, ...]
    attributes: tuple[AttributeValue, ...]


class Outline(NamedTuple):
    """A variant's source as the tree knows it.

    `slots` are its attribute variables in the order of their numbers, `roots` the application of each output.
    """

    tests: tuple[Test, ...]
    slots: tuple[str, ...]
    roots: tuple[int, ...]


def outline(variant: Variant) -> Outline:
    """Write out a variant's source as tests."""
    variables = {name: i for i, name in enumerate(variant.variables)}
    applications: dict[Apply, int] = {}
    slots: dict[str, Slot] = {}

    def slotted(value: Any) -> Any:
        is_variable = isinstance(value, str) and value.startswith("?")
        return slots.setdefault(value, Slot(len(slots))) if is_variable else value

    def tests(term: Term) -> Iterator[Test]:
        if isinstance(term, Variable):
            yield Bind(variables[term.name])
        elif not pattern.variables(term):
            yield Number(slotted(_number(term)))  # a term without variables is a number
        elif term.node in applications:
            yield Again(applications[term.node], term.output)
        else:
            applications[term.node] = len(applications)
            attributes = tuple((name, slotted(value)) for name, value in term.attributes)
            yield Enter(term.op, term.output, len(term.arguments), attributes, number_at(term))
            for argument in term.arguments:
                yield from tests(argument)

    written: list[Test] = []
    for place, root in enumerate(variant.roots):
        if place:
            roots = tuple(applications[r] for r in variant.roots[:place])
            written.append(Climb(variables[variant.anchor], variant.ascents[place], roots))
        written += tests(root)
    return Outline(tuple(written), tuple(slots), tuple(applications[s.node] for s in variant.source))


def _number(term: Apply) -> float | str:
    """Compute a scalar without variables, in float32; the value of a Constant may be an attribute variable instead."""
    value = dict(term.attributes).get("value_float")
    if isinstance(value, str):
        return value
    (computed,) = run_plan(plan_of((term,), Instance({}, {}, {})), (), FloatDomain())
    return float(computed[()])


@dataclass(slots=True)
class Place:
    """A point in the tree: the tests that may come next, by their type, and the variants that end here.

    `depth` is that of the deepest variant from here on.
    """

    depth: int = 0
    ends: list[int] = field(default_factory=list)
    variables: list[tuple[int, Place]] = field(default_factory=list)
    operators: dict[str, list[tuple[Enter, Place]]] = field(default_factory=lambda: defaultdict(list))
    others: list[tuple[Again | Number, Place]] = field(default_factory=list)
    climbs: list[tuple[Climb, Place]] = field(default_factory=list)

    def extend(self, test: Test) -> Place:
        """Add a new point behind this test."""
        place = Place()
        match test:
            case Bind(variable):
                self.variables.append((variable, place))
            case Enter(op):
                self.operators[op].append((test, place))
            case Climb():
                self.climbs.append((test, place))
            case _:
                self.others.append((test, place))
        return place


class _Ahead(NamedTuple):
    """A linked list of values that are still to be tested, each with the node that reads it."""

    value: Ref
    reader: Node | None
    rest: _Ahead | None


class _State(NamedTuple):
    """The state of a walk: its point in the tree, the values ahead, and everything bound so far."""

    place: Place
    ahead: _Ahead | None
    values: tuple[Ref, ...] = ()
    nodes: tuple[int, ...] = ()
    slots: tuple[AttributeValue, ...] = ()


def planted(sources: Iterable[tuple[int, int, Outline]]) -> Place:
    """Return the first point of a tree of sources, each given by its number, its depth and its outline."""
    start = Place()
    places: dict[tuple[Test, ...], Place] = {(): start}
    for number, depth, written in sources:
        for length in range(len(written.tests) + 1):
            path = written.tests[:length]
            if path not in places:  # sources that begin alike share their places
                places[path] = places[path[:-1]].extend(path[-1])
            places[path].depth = max(places[path].depth, depth)
        places[written.tests].ends.append(number)
    return start


class DiscriminationTree:
    """The tree of some variants, each known by its number."""

    def __init__(self, variants: Iterable[tuple[Variant, Outline]]) -> None:
        self._start = planted((number, variant.depth, written) for number, (variant, written) in enumerate(variants))

    def occurrences(self, graph: Graph, root: int, deeper_than: int = -1) -> list[Occurrence]:
        """Return the occurrences with their first root at this node, of variants deeper than this, by their numbers."""
        found: list[Occurrence] = []
        stack = [_State(self._start, _Ahead(Ref(root), None, None))]
        while stack:
            state = stack.pop()
            place, ahead = state.place, state.ahead
            if place.depth <= deeper_than:  # nothing from here on is deep enough
                continue
            if ahead is None:
                found.extend(Occurrence(variant, *state[2:]) for variant in place.ends)
                stack.extend(_at_further_roots(graph, state))
                continue
            if place.variables:
                stack.extend(_as_variable(state, ahead))
            operators = place.operators.get(graph.nodes[ahead.value.node].op)
            if operators:
                stack.extend(_entered(graph, operators, state, ahead))
            if place.others:
                stack.extend(_as_known(graph, state, ahead))
        return sorted(found, key=lambda occurrence: occurrence.variant)


def _as_variable(state: _State, ahead: _Ahead) -> Iterator[_State]:
    """Pass the value ahead as a variable."""
    place, _, values, nodes, slots = state
    for variable, further in place.variables:
        if variable == len(values):
            yield _State(further, ahead.rest, (*values, ahead.value), nodes, slots)
        elif values[variable] == ahead.value:
            yield _State(further, ahead.rest, values, nodes, slots)


def _entered(graph: Graph, operators: Iterable[tuple[Enter, Place]], state: _State, ahead: _Ahead) -> Iterator[_State]:
    """Pass the value ahead as an output of one of these operators; its operands then come first."""
    value, _, rest = ahead
    node = graph.nodes[value.node]
    for enter, further in operators:
        if enter.output != value.index or enter.arity != len(node.inputs):
            continue
        slots = bound(enter.attributes, node.attributes, state.slots)
        operands = _operands(graph, node, enter.number_at)
        if slots is not None and operands is not None:
            yield _State(further, _in_front(operands, node, rest), state.values, (*state.nodes, value.node), slots)


def _as_known(graph: Graph, state: _State, ahead: _Ahead) -> Iterator[_State]:
    """Pass the value ahead as a number, or as an application that was entered before."""
    place, _, values, nodes, slots = state
    for test, further in place.others:
        if isinstance(test, Number):
            numbered = _as_number(graph, test.value, ahead, slots)
            if numbered is not None:
                yield _State(further, ahead.rest, values, nodes, numbered)
        elif ahead.value == (nodes[test.application], test.output):
            yield _State(further, ahead.rest, values, nodes, slots)


def _at_further_roots(graph: Graph, state: _State) -> Iterator[_State]:
    """Continue with each node that may be the next root."""
    for up, further in state.place.climbs:
        taken = {state.nodes[root] for root in up.roots}
        for node in climb(graph, state.values[up.variable], up.path):
            if node not in taken:
                yield _State(further, _Ahead(Ref(node), None, None), *state[2:])


def _in_front(operands: Sequence[Ref], reader: Node, rest: _Ahead | None) -> _Ahead | None:
    for operand in reversed(operands):
        rest = _Ahead(operand, reader, rest)
    return rest


def _operands(graph: Graph, node: Node, number_at: int | None) -> tuple[Ref, ...] | None:
    """Return all operands, a number in its place; None if the node is opaque or leaves an operand out."""
    operands = tuple(r for r in node.inputs if r is not None)
    if node.is_opaque or len(operands) < len(node.inputs):
        return None
    if number_at is not None and not graph.nodes[operands[number_at].node].constant:
        return operands[::-1]
    return operands


def bound(
    wanted: tuple[tuple[str, Any], ...], present: Attributes, slots: tuple[AttributeValue, ...]
) -> tuple[AttributeValue, ...] | None:
    """Return the attribute variables with those of a node's attributes, None if the node has other attributes."""
    for name, value in wanted:
        found = present.get(name)
        if found is None:
            return None
        if isinstance(value, Slot):
            if value.number == len(slots):  # the first occurrence of the variable binds it
                slots = (*slots, found)
                continue
            value = slots[value.number]
        if value != found:
            return None
    return slots


_SCALAR, _ROW_OF_ONE = TensorType("float32", ()), TensorType("float32", (1,))
"""Types of a stored number; the second is how some exporters write it."""

_ROUNDING = float(np.finfo(np.float32).eps)


def _as_number(
    graph: Graph, wanted: float | Slot, ahead: _Ahead, slots: tuple[AttributeValue, ...]
) -> tuple[AttributeValue, ...] | None:
    """Return the attribute variables if the value is the wanted number up to a rounding, else None."""
    value, reader, _ = ahead
    if reader is None or not graph.nodes[value.node].constant:
        return None
    others = (graph.type_of(r) for r in reader.inputs if r is not None and r != value)
    if not may_be_number(graph.type_of(value), others):
        return None
    present = stored_number(graph, value)
    return None if present is None else numbered(present, wanted, slots)


def may_be_number(tensor_type: TensorType | None, others: Iterable[TensorType | None]) -> bool:
    """Return True if a constant of this type can be what a rule calls a number; `others` are read beside it.

    One of shape (1,) counts only if its reader has another operand of at least one axis: otherwise it would add an axis
    to the result, which the scalar of the rule does not.
    """
    if tensor_type == _ROW_OF_ONE:
        return any(other is not None and other.rank for other in others)
    return tensor_type == _SCALAR


def numbered(
    present: float, wanted: float | Slot, slots: tuple[AttributeValue, ...]
) -> tuple[AttributeValue, ...] | None:
    """Return the attribute variables if the number is the wanted one up to a rounding, else None."""
    if not isinstance(wanted, Slot):
        return slots if abs(present - wanted) <= _ROUNDING * abs(wanted) else None
    if wanted.number == len(slots):
        return (*slots, present)
    return slots if slots[wanted.number] == present else None


def stored_number(graph: Graph, ref: Ref) -> float | None:
    """Return the value of a constant of one element; None if the graph does not hold the data that it depends on."""
    try:
        return evaluate_value(graph.nodes, ref, {}, FloatDomain()).item()  # type: ignore[no-any-return]
    except GraphError:
        return None


def climb(graph: Graph, start: Ref, path: Sequence[str]) -> Iterator[int]:
    """Yield the nodes that are reached from a value through consumers of these operators, one after another.

    Any output of a consumer may lead on; a node that reads several of them is yielded once.
    """
    if not path:
        yield start.node
        return
    for reader in graph.consumers[start.node]:
        node = graph.nodes[reader]
        if node.op == path[0] and start in node.inputs:
            ends = [climb(graph, Ref(reader, output), path[1:]) for output in range(len(node.types))]
            yield from ends[0] if len(ends) == 1 else dict.fromkeys(chain.from_iterable(ends))


def descend(graph: Graph, node: int, path: Sequence[int]) -> Ref | None:
    """Return the value that is reached through operands at these places, one after another; None if there is none."""
    ref: Ref | None = Ref(node)
    for place in path:
        inputs = graph.nodes[ref.node].inputs if ref is not None else ()
        ref = inputs[place] if place < len(inputs) else None
    return ref
