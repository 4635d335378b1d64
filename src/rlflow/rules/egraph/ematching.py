"""E-matching: where in an e-graph terms occur, each under any of its names.

The terms are compiled into steps, each of which extends what is bound by one node (de Moura and Bjørner, Efficient
E-Matching for SMT Solvers, 2007).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

from rlflow.ir.node import AttributeValue
from rlflow.ops import registry
from rlflow.rules import pattern
from rlflow.rules.egraph.egraph import ClassId, EGraph, ENode
from rlflow.rules.pattern import Apply, Term, Variable

Values = tuple[AttributeValue, ...]


class Occurrence(NamedTuple):
    """Classes of the terms and of their variables, and what the attribute variables are."""

    roots: tuple[ClassId, ...]
    variables: tuple[ClassId, ...]
    attributes: Values


class EMatcher:
    """Finds terms together, with the same bindings; `variables` and `attributes` are the names of what it binds, in the
    order of an `Occurrence`."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.operators = frozenset(node.op for node in pattern.operators(*terms))
        program = _Program(terms)
        self._steps = program.steps
        self._roots = [program.registers[term] for term in terms]
        self._variables = {t.name: i for t, i in program.registers.items() if isinstance(t, Variable)}
        self.variables, self.attributes = tuple(self._variables), tuple(program.attributes)

    def occurrences(self, graph: EGraph) -> Iterator[Occurrence]:
        """All of them in the graph as it was last rebuilt; it may be changed meanwhile."""
        if not self.operators <= graph.nodes_by_operator.keys():
            return
        states: Iterable[_State] = [((), ())]
        for step in self._steps:
            states = step.extended(states, graph)
        for classes, values in states:
            roots = tuple(classes[i] for i in self._roots)
            yield Occurrence(roots, tuple(classes[i] for i in self._variables.values()), values)


_State = tuple[tuple[ClassId, ...], Values]
"""What is bound so far: classes by their register, attribute variables by their number."""


def _orders(children: tuple[ClassId, ...]) -> Iterable[tuple[ClassId, ...]]:
    if len(children) == 2:
        return (children,) if children[0] == children[1] else (children, children[::-1])
    return dict.fromkeys(permutations(children))


class _Attribute(NamedTuple):
    """What an attribute must be: `value`, or what the attribute variable of this number is bound to."""

    name: str
    value: AttributeValue
    number: int | None


class _Step(NamedTuple):
    """Choose a node of the class in register `owner`, or of any class, which then gets the next register, and give a
    register to each of its operands. Registers in `equal` must agree; those in `unequal` must not hold the class."""

    op: str
    output: int
    owner: int | None
    arity: int
    commutative: bool
    attributes: tuple[_Attribute, ...]
    equal: tuple[tuple[int, int], ...]
    unequal: tuple[int, ...]

    def extended(self, states: Iterable[_State], graph: EGraph) -> Iterator[_State]:
        """The states with one node more."""
        present = graph.nodes_by_operator[self.op]
        for classes, values in states:
            if self.owner is not None:
                for node in present.get(classes[self.owner], ()):
                    yield from self._with(node, classes, values)
                continue
            for owner, nodes in present.items():
                if not any(classes[other] == owner for other in self.unequal):
                    for node in nodes:
                        yield from self._with(node, (*classes, owner), values)

    def _with(self, node: ENode, classes: tuple[ClassId, ...], values: Values) -> Iterator[_State]:
        """The state with this node, in each order of its operands that agrees with what is bound."""
        if node.output != self.output or len(node.children) != self.arity:
            return
        bound = self._bound(node, values) if self.attributes else values
        if bound is None:
            return
        for children in _orders(node.children) if self.commutative else (node.children,):
            extended = classes + children
            for one, other in self.equal:
                if extended[one] != extended[other]:
                    break
            else:
                yield extended, bound

    def _bound(self, node: ENode, values: Values) -> Values | None:
        present = dict(node.attributes)
        for name, value, number in self.attributes:
            if name not in present:
                return None
            if number == len(values):
                values = (*values, present[name])
            elif present[name] != (value if number is None else values[number]):
                return None
        return values


class _Program:
    """The steps that match the terms one after another. A part that occurs twice has one register: by congruence it
    is in one class."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.steps: list[_Step] = []
        self.registers: dict[Term, int] = {}
        self.attributes: dict[str, int] = {}
        self._size = 0
        for place, term in enumerate(terms):
            assert isinstance(term, Apply)
            # Outputs of distinct nodes are distinct in a graph too (rules/matching/match.py).
            others = [t for t in terms[:place] if isinstance(t, Apply) and t.node != term.node]
            self.registers[term] = self._size
            self._size += 1
            self._match(term, None, tuple(self.registers[other] for other in others))

    def _match(self, term: Apply, owner: int | None, unequal: tuple[int, ...] = ()) -> None:
        equal, inner = [], []
        for register, argument in enumerate(term.arguments, start=self._size):
            if argument in self.registers:
                equal.append((self.registers[argument], register))
                continue
            self.registers[argument] = register
            if isinstance(argument, Apply):
                inner.append(argument)
        self._size += len(term.arguments)
        attributes = tuple(self._attribute(name, value) for name, value in term.attributes)
        commutative = registry.OPERATORS[term.op].commutative
        self.steps.append(
            _Step(term.op, term.output, owner, len(term.arguments), commutative, attributes, tuple(equal), unequal)
        )
        for argument in inner:
            self._match(argument, self.registers[argument])

    def _attribute(self, name: str, value: Any) -> _Attribute:
        if isinstance(value, str) and value.startswith("?"):
            return _Attribute(name, value, self.attributes.setdefault(value, len(self.attributes)))
        return _Attribute(name, value, None)
