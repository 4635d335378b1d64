"""E-matching of terms: where the sources of rules occur in an e-graph of terms, whatever class members spell them.

The terms are compiled into steps that fill registers with classes (de Moura and Bjørner, Efficient E-Matching for SMT
Solvers, 2007). MatMul(Relu(a), b) becomes

    step 0: for each MatMul node of any class (register 0), put its operands into registers 1 and 2
    step 1: for each Relu node of the class in register 1, put its operand into register 3

with a in register 3 and b in register 2. A state is a tuple of registers; each step extends every state by each node
that fits.

Unlike the walk of `egraph/occurrences.py`, this takes the operands of Sum(a, b, c) in any order, knows terms without
variables as terms instead of numbers, and needs no shared variable between roots; it looks for one rule at a time.

Invariant: a variable, and a part that occurs twice, has one register: later occurrences are compared with it. By
congruence, equal terms are in one class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

from rlflow.egraph.egraph import ClassId, ENode
from rlflow.egraph.term_egraph import TermEGraph
from rlflow.ir.node import AttributeValue
from rlflow.ops import registry
from rlflow.rules import pattern
from rlflow.rules.matching.discrimination_tree import Slot, bound
from rlflow.rules.pattern import Apply, Term, Variable

Values = tuple[AttributeValue, ...]


class TermOccurrence(NamedTuple):
    """An occurrence: the classes of the terms and of their variables, and the values of attribute variables."""

    roots: tuple[ClassId, ...]
    variables: tuple[ClassId, ...]
    attributes: Values


class TermMatcher:
    """Finds several terms together, under the same bindings.

    `variables` and `attributes` are the names that it binds, in the order of a `TermOccurrence`.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self.operators = frozenset(node.op for node in pattern.operators(*terms))
        program = _Program(terms)
        self._steps = program.steps
        self._roots = [program.registers[term] for term in terms]
        self._variables = {t.name: i for t, i in program.registers.items() if isinstance(t, Variable)}
        self.variables, self.attributes = tuple(self._variables), tuple(program.attributes)

    def occurrences(self, graph: TermEGraph) -> Iterator[TermOccurrence]:
        """Yield all occurrences in the graph as it was last rebuilt; the graph may be changed meanwhile."""
        if not self.operators <= graph.nodes_by_operator.keys():
            return
        states: Iterable[_State] = [((), ())]
        for step in self._steps:
            states = step.extended(states, graph)
        for classes, values in states:
            roots = tuple(classes[i] for i in self._roots)
            yield TermOccurrence(roots, tuple(classes[i] for i in self._variables.values()), values)


_State = tuple[tuple[ClassId, ...], Values]
"""The bindings so far: classes by register, values of attribute variables by number."""


def _orders(children: tuple[ClassId, ...]) -> Iterable[tuple[ClassId, ...]]:
    """Return all different orders of the operands of a commutative operator."""
    if len(children) == 2:
        return (children,) if children[0] == children[1] else (children, children[::-1])
    return dict.fromkeys(permutations(children))


class _Step(NamedTuple):
    """A step: choose a node of the class in register `owner` and put its operands into the next registers.

    If `owner` is None, a node of any class is chosen, which gets a register of its own first. Registers in `equal` must
    agree pairwise; those in `unequal` must not hold the class.
    """

    op: str
    output: int
    owner: int | None
    arity: int
    commutative: bool
    attributes: tuple[tuple[str, Any], ...]
    equal: tuple[tuple[int, int], ...]
    unequal: tuple[int, ...]

    def extended(self, states: Iterable[_State], graph: TermEGraph) -> Iterator[_State]:
        """Extend each state by each node that fits."""
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
        """Extend a state by this node, once for each order of its operands that agrees with the bindings."""
        if node.output != self.output or len(node.children) != self.arity:
            return
        bindings = bound(self.attributes, node.node.attributes, values)
        if bindings is None:
            return
        for children in _orders(node.children) if self.commutative else (node.children,):
            extended = classes + children
            # `for ... else` instead of `all(...)`: this is the inner loop of saturation.
            for one, other in self.equal:
                if extended[one] != extended[other]:
                    break
            else:
                yield extended, bindings


class _Program:
    """The steps that match the terms one after another, and the registers of their parts."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.steps: list[_Step] = []
        self.registers: dict[Term, int] = {}
        self.attributes: dict[str, int] = {}
        self._size = 0
        for place, term in enumerate(terms):
            assert isinstance(term, Apply)
            # As in a graph (rules/matching), applications that differ in the terms must be different nodes.
            others = [t for t in terms[:place] if isinstance(t, Apply) and t.node != term.node]
            self.registers[term] = self._size
            self._size += 1
            self._match(term, None, tuple(self.registers[other] for other in others))

    def _match(self, term: Apply, owner: int | None, unequal: tuple[int, ...] = ()) -> None:
        """Add the step of an application, then those of its operands."""
        equal, inner = [], []
        for register, argument in enumerate(term.arguments, start=self._size):
            if argument in self.registers:
                equal.append((self.registers[argument], register))
                continue
            self.registers[argument] = register
            if isinstance(argument, Apply):
                inner.append(argument)
        self._size += len(term.arguments)

        attributes = tuple((name, self._slotted(value)) for name, value in term.attributes)
        commutative = registry.OPERATORS[term.op].commutative
        self.steps.append(
            _Step(term.op, term.output, owner, len(term.arguments), commutative, attributes, tuple(equal), unequal)
        )
        for argument in inner:
            self._match(argument, self.registers[argument])

    def _slotted(self, value: Any) -> Any:
        """Return the attribute variable of a value by its number, or the value itself."""
        is_variable = isinstance(value, str) and value.startswith("?")
        return Slot(self.attributes.setdefault(value, len(self.attributes))) if is_variable else value
