"""Equality saturation: rules applied to an e-graph wherever their sources occur, until nothing new is equal.

Matching extends what is bound by one source node after another (de Moura and Bjørner, Efficient E-Matching for SMT
Solvers, 2007). Whether an instance is admitted, and what its target is, follows from the types of the variables and
from the attributes alone: both are worked out once for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, permutations
from typing import Any, NamedTuple

from rlflow.errors import RuleError, TypeInferenceError
from rlflow.ir.graph import AttributeValue, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.rules import instances, pattern
from rlflow.rules.egraph import ClassId, EGraph, ENode
from rlflow.rules.expression import Unproven, holds
from rlflow.rules.instances import Instance, Plan
from rlflow.rules.match import admitted
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.rule import Rule


class Target(NamedTuple):
    """The nodes of a target, operands first, each with its type. Their children, and the `outputs`, are numbers of
    variables and then of these nodes."""

    nodes: tuple[tuple[ENode, TensorType], ...]
    outputs: tuple[int, ...]

    @classmethod
    def of(cls, plan: Plan, variables: int) -> Target:
        places = {Ref(i): i for i in range(variables)}
        nodes: list[tuple[ENode, TensorType]] = []
        for number, step in enumerate(plan.steps, start=variables):
            attributes = tuple(sorted((name, pattern.freeze(value)) for name, value in step.attributes.items()))
            children = tuple(places[ref] for ref in step.inputs)
            for output, kind in enumerate(step.types):
                places[Ref(number, output)] = variables + len(nodes)
                nodes.append((ENode(step.op, attributes, output, children), kind))
        return cls(tuple(nodes), tuple(places[ref] for ref in plan.outputs))


class Match(NamedTuple):
    """An occurrence of a rule's source: its outputs and its variables as classes, and the target there."""

    roots: tuple[ClassId, ...]
    variables: tuple[ClassId, ...]
    target: Target

    def apply(self, graph: EGraph) -> None:
        """Unite each output of the source with that of the target."""
        classes = list(self.variables)
        for node, kind in self.target.nodes:
            children = tuple(classes[child] for child in node.children)
            classes.append(graph.insert(node._replace(children=children), kind))
        for root, output in zip(self.roots, self.target.outputs, strict=True):
            graph.unite(root, classes[output])

    def applied(self, graph: EGraph) -> EGraph:
        """The graph with this match alone applied, and rebuilt."""
        changed = graph.copy()
        self.apply(changed)
        changed.rebuild()
        return changed


class CompiledRule:
    """A certified rule, ready to be matched. `RuleError` if the rule was not verified."""

    def __init__(self, rule: Rule) -> None:
        if rule.certificate is None:
            raise RuleError(f"rule {rule.id} ({rule.name}) has no certificate and may not prune others")
        self.rule = rule
        self.operators = frozenset(node.op for node in pattern.operators(*rule.source))
        program = _Program(rule.source)
        self._steps, self._attributes = program.steps, tuple(program.attributes)
        self._roots = [program.registers[source] for source in rule.source]
        self._variables = {t.name: i for t, i in program.registers.items() if isinstance(t, Variable)}
        self._targets: dict[tuple[tuple[TensorType, ...], _Values], Target | None] = {}

    def matches(self, graph: EGraph) -> Iterator[Match]:
        """All occurrences of the source in the graph as it was last rebuilt, where the rule applies."""
        if not self.operators <= graph.nodes_by_operator.keys():
            return
        states: Iterable[_State] = [_State((), ())]
        for step in self._steps:
            states = step.extended(states, graph)
        for classes, values in states:
            variables = tuple(classes[i] for i in self._variables.values())
            target = self.target(tuple(map(graph.type_of, variables)), values)
            if target is not None:
                yield Match(tuple(classes[i] for i in self._roots), variables, target)

    def target(self, types: tuple[TensorType, ...], values: _Values = ()) -> Target | None:
        """The target where the variables have these types and the attribute variables these values, each in the order
        of their occurrence; None if the rule does not apply there."""
        if (types, values) not in self._targets:
            self._targets[types, values] = self._instantiated(types, values)
        return self._targets[types, values]

    def _instantiated(self, types: tuple[TensorType, ...], values: _Values) -> Target | None:
        rule = self.rule
        instance = Instance(
            dict(zip(self._variables, types, strict=True)), dict(zip(self._attributes, values, strict=True)), {}
        )
        # Nothing tells the number of a literal variable here.
        if any(rule.spec(name).literal for name in instance.types):
            return None
        if not admitted(rule, instance.types, dict.fromkeys(instance.types, True)):
            return None
        try:
            if not all(holds(condition, instance.scope) for condition in rule.where):
                return None
            source, target = instances.plan(rule.source, instance), instances.plan(rule.target, instance)
        except (TypeInferenceError, Unproven):
            return None
        return Target.of(target, len(types)) if source.types == target.types else None


_Values = tuple[AttributeValue, ...]


class _State(NamedTuple):
    """What is bound so far: classes by their register, attribute variables by their number."""

    classes: tuple[ClassId, ...]
    attributes: _Values


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

    def _with(self, node: ENode, classes: tuple[ClassId, ...], values: _Values) -> Iterator[_State]:
        if node.output != self.output or len(node.children) != self.arity:
            return
        bound = self._bound(node, values)
        if bound is None:
            return
        commutative = registry.OPERATORS[self.op].commutative
        for children in dict.fromkeys(permutations(node.children)) if commutative else (node.children,):
            extended = classes + children
            if all(extended[one] == extended[other] for one, other in self.equal):
                yield _State(extended, bound)

    def _bound(self, node: ENode, values: _Values) -> _Values | None:
        present = dict(node.attributes) if self.attributes else {}
        for name, value, number in self.attributes:
            if number == len(values) and name in present:
                values = (*values, present[name])
            elif present.get(name) != (value if number is None else values[number]):
                return None
        return values


class _Program:
    """The steps that match the sources one after another. A part that occurs twice has one register: by congruence it
    is in one class."""

    def __init__(self, sources: Sequence[Term]) -> None:
        self.steps: list[_Step] = []
        self.registers: dict[Term, int] = {}
        self.attributes: dict[str, int] = {}
        self._size = 0
        for place, source in enumerate(sources):
            assert isinstance(source, Apply)
            # Distinct nodes of a rule are distinct in a graph too (rules/match.py).
            others = [s for s in sources[:place] if isinstance(s, Apply) and s.node != source.node]
            self.registers[source] = self._size
            self._size += 1
            self._match(source, None, tuple(self.registers[other] for other in others))

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
        self.steps.append(_Step(term.op, term.output, owner, len(term.arguments), attributes, tuple(equal), unequal))
        for argument in inner:
            self._match(argument, self.registers[argument])

    def _attribute(self, name: str, value: Any) -> _Attribute:
        if isinstance(value, str) and value.startswith("?"):
            return _Attribute(name, value, self.attributes.setdefault(value, len(self.attributes)))
        return _Attribute(name, value, None)


def saturate(
    graph: EGraph, rules: Sequence[CompiledRule], until: Callable[[], bool], max_iterations: int, max_nodes: int
) -> bool:
    """Apply all rules wherever they match, again and again, until `until` holds: whether it does.

    It ends as well when nothing changes any more, after so many iterations, and as soon as there are so many nodes.
    """
    graph.rebuild()
    for _ in range(max_iterations):
        if until():
            return True
        for match in chain.from_iterable(rule.matches(graph) for rule in rules):
            if len(graph) >= max_nodes:
                break
            match.apply(graph)
        if not graph.rebuild():
            break
    return until()
