"""Where the sources of many rules occur, looked for all at once.

Every source is written out as a list of tests in the order in which a walk down from its root meets its parts,
variables and applications numbered as they come. Sources that begin alike share the tests that they begin with: a
discrimination tree, as theorem provers index their rewrite rules (McCune, Journal of Automated Reasoning 9, 1992).
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
from rlflow.ir.node import AttributeValue, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.domain import FloatDomain
from rlflow.ops.reference import evaluate_value
from rlflow.rules import pattern
from rlflow.rules.matching.variants import Variant, number_at
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.plan import Instance, plan_of, run_plan


class _Slot(NamedTuple):
    """An attribute variable, by its number."""

    number: int


class _Bind(NamedTuple):
    """The value is that of a variable."""

    variable: int


class _Enter(NamedTuple):
    """The value is an output of an application, whose operands are looked at next. `number_at` is the place of the
    number beside which a commutative operator has another operand.
    """

    op: str
    output: int
    arity: int
    attributes: tuple[tuple[str, Any], ...]
    number_at: int | None


class _Again(NamedTuple):
    """The value is an output of an application that was entered before."""

    application: int
    output: int


class _Number(NamedTuple):
    """The value is a stored scalar: this one, or whatever the attribute variable stands for."""

    value: float | _Slot


class _Climb(NamedTuple):
    """A further root, none of those before, is reached from a variable through consumers of these operators."""

    variable: int
    path: tuple[str, ...]
    roots: tuple[int, ...]


_Test = _Bind | _Enter | _Again | _Number | _Climb


class Occurrence(NamedTuple):
    """A variant's source in a graph: what its variables, applications and attribute variables stand for, in the order
    in which they occur there.
    """

    variant: int
    values: tuple[Ref, ...]
    nodes: tuple[int, ...]
    attributes: tuple[AttributeValue, ...]


class Outline(NamedTuple):
    """What a variant's source looks like to the tree: the tests, the attribute variables in the order of their numbers,
    and for each root which application it is.
    """

    tests: tuple[_Test, ...]
    slots: tuple[str, ...]
    roots: tuple[int, ...]


def outline(variant: Variant) -> Outline:
    variables = {name: i for i, name in enumerate(variant.variables)}
    applications: dict[Apply, int] = {}
    slots: dict[str, _Slot] = {}

    def slotted(value: Any) -> Any:
        is_variable = isinstance(value, str) and value.startswith("?")
        return slots.setdefault(value, _Slot(len(slots))) if is_variable else value

    def tests(term: Term) -> Iterator[_Test]:
        if isinstance(term, Variable):
            yield _Bind(variables[term.name])
        elif not pattern.variables(term):
            yield _Number(slotted(_number(term)))
        elif term.node in applications:
            yield _Again(applications[term.node], term.output)
        else:
            applications[term.node] = len(applications)
            attributes = tuple((name, slotted(value)) for name, value in term.attributes)
            yield _Enter(term.op, term.output, len(term.arguments), attributes, number_at(term))
            for argument in term.arguments:
                yield from tests(argument)

    written: list[_Test] = []
    for place, root in enumerate(variant.roots):
        if place:
            roots = tuple(applications[r] for r in variant.roots[:place])
            written.append(_Climb(variables[variant.anchor], variant.ascents[place], roots))
        written += tests(root)
    return Outline(tuple(written), tuple(slots), tuple(applications[s.node] for s in variant.source))


def _number(term: Apply) -> float | str:
    """The value of a scalar without variables, in float32; a Constant's may be an attribute variable."""
    value = dict(term.attributes).get("value_float")
    if isinstance(value, str):
        return value
    (computed,) = run_plan(plan_of((term,), Instance({}, {}, {})), (), FloatDomain())
    return float(computed[()])


@dataclass(slots=True)
class _Place:
    """A point in the tree: the tests that may come next by their kind, and the variants that end here. `depth` is that
    of the deepest variant from here on.
    """

    depth: int = 0
    ends: list[int] = field(default_factory=list)
    variables: list[tuple[int, _Place]] = field(default_factory=list)
    operators: dict[str, list[tuple[_Enter, _Place]]] = field(default_factory=lambda: defaultdict(list))
    others: list[tuple[_Again | _Number, _Place]] = field(default_factory=list)
    climbs: list[tuple[_Climb, _Place]] = field(default_factory=list)

    def extend(self, test: _Test) -> _Place:
        place = _Place()
        match test:
            case _Bind(variable):
                self.variables.append((variable, place))
            case _Enter(op):
                self.operators[op].append((test, place))
            case _Climb():
                self.climbs.append((test, place))
            case _:
                self.others.append((test, place))
        return place


class _Ahead(NamedTuple):
    """What is still to be looked at: a value, the node that reads it, and the rest."""

    value: Ref
    reader: Node | None
    rest: _Ahead | None


class _State(NamedTuple):
    """Where a walk stands: what lies ahead, and what has been passed."""

    place: _Place
    ahead: _Ahead | None
    values: tuple[Ref, ...] = ()
    nodes: tuple[int, ...] = ()
    slots: tuple[AttributeValue, ...] = ()


class DiscriminationTree:
    """Of variants, each known by its number."""

    def __init__(self, variants: Iterable[tuple[Variant, Outline]]) -> None:
        self._start = _Place()
        places: dict[tuple[_Test, ...], _Place] = {(): self._start}
        for number, (variant, written) in enumerate(variants):
            for length in range(len(written.tests) + 1):
                path = written.tests[:length]
                if path not in places:
                    places[path] = places[path[:-1]].extend(path[-1])
                places[path].depth = max(places[path].depth, variant.depth)
            places[written.tests].ends.append(number)

    def occurrences(self, graph: Graph, root: int, deeper_than: int = -1) -> list[Occurrence]:
        """Of the variants of more than this depth with their first root at this node, by their numbers."""
        found: list[Occurrence] = []
        stack = [_State(self._start, _Ahead(Ref(root), None, None))]
        while stack:
            state = stack.pop()
            place, ahead = state.place, state.ahead
            if place.depth <= deeper_than:
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
    place, _, values, nodes, slots = state
    for variable, further in place.variables:
        if variable == len(values):
            yield _State(further, ahead.rest, (*values, ahead.value), nodes, slots)
        elif values[variable] == ahead.value:
            yield _State(further, ahead.rest, values, nodes, slots)


def _entered(
    graph: Graph, operators: Iterable[tuple[_Enter, _Place]], state: _State, ahead: _Ahead
) -> Iterator[_State]:
    value, _, rest = ahead
    node = graph.nodes[value.node]
    for enter, further in operators:
        if enter.output != value.index or enter.arity != len(node.inputs):
            continue
        slots = _bound(enter.attributes, node, state.slots)
        operands = _operands(graph, node, enter.number_at)
        if slots is not None and operands is not None:
            yield _State(further, _in_front(operands, node, rest), state.values, (*state.nodes, value.node), slots)


def _as_known(graph: Graph, state: _State, ahead: _Ahead) -> Iterator[_State]:
    place, _, values, nodes, slots = state
    for test, further in place.others:
        if isinstance(test, _Number):
            numbered = _as_number(graph, test.value, ahead, slots)
            if numbered is not None:
                yield _State(further, ahead.rest, values, nodes, numbered)
        elif ahead.value == (nodes[test.application], test.output):
            yield _State(further, ahead.rest, values, nodes, slots)


def _at_further_roots(graph: Graph, state: _State) -> Iterator[_State]:
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
    """All of them, a number in its place; None if the node is opaque or one is left out."""
    operands = tuple(r for r in node.inputs if r is not None)
    if node.is_opaque or len(operands) < len(node.inputs):
        return None
    if number_at is not None and not graph.nodes[operands[number_at].node].constant:
        return operands[::-1]
    return operands


def _bound(
    wanted: tuple[tuple[str, Any], ...], node: Node, slots: tuple[AttributeValue, ...]
) -> tuple[AttributeValue, ...] | None:
    """The attribute variables with those of this node; None if it has other attributes."""
    for name, value in wanted:
        present = node.attributes.get(name)
        if present is None:
            return None
        if isinstance(value, _Slot):
            if value.number == len(slots):
                slots = (*slots, present)
                continue
            value = slots[value.number]
        if value != present:
            return None
    return slots


_SCALAR, _ROW_OF_ONE = TensorType("float32", ()), TensorType("float32", (1,))
"""Types of a stored number; the second is how some exporters write it."""

_ROUNDING = float(np.finfo(np.float32).eps)


def _as_number(
    graph: Graph, wanted: float | _Slot, ahead: _Ahead, slots: tuple[AttributeValue, ...]
) -> tuple[AttributeValue, ...] | None:
    """The attribute variables, if the value is a stored number, this one up to a rounding, that adds no axis to what
    its reader makes of the other operands.
    """
    value, reader, _ = ahead
    kind = graph.type_of(value)
    if reader is None or not graph.nodes[value.node].constant or kind not in (_SCALAR, _ROW_OF_ONE):
        return None
    others = (graph.type_of(r) for r in reader.inputs if r is not None and r != value)
    if kind == _ROW_OF_ONE and not any(other is not None and other.rank for other in others):
        return None
    present = stored_number(graph, value)
    if present is None:
        return None
    if not isinstance(wanted, _Slot):
        return slots if abs(present - wanted) <= _ROUNDING * abs(wanted) else None
    if wanted.number == len(slots):
        return (*slots, present)
    return slots if slots[wanted.number] == present else None


def stored_number(graph: Graph, ref: Ref) -> float | None:
    """The value of a constant of one element; None where the graph does not have what it is made of."""
    try:
        return evaluate_value(graph, ref, {}, FloatDomain()).item()  # type: ignore[no-any-return]
    except GraphError:
        return None


def climb(graph: Graph, start: Ref, path: Sequence[str]) -> Iterator[int]:
    """Nodes that are reached from a value through consumers of these operators, one after another, by any of their
    outputs: once, where one reads several.
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
    """The value that is reached through these operands, one after another; None if there is none."""
    ref: Ref | None = Ref(node)
    for place in path:
        inputs = graph.nodes[ref.node].inputs if ref is not None else ()
        ref = inputs[place] if place < len(inputs) else None
    return ref
