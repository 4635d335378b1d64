"""Equality saturation: rules applied to an e-graph wherever their sources occur, until nothing new is equal.

    rules = CompiledRules();  rules.add(CompiledRule(rule))
    saturate(graph, [rules], until=lambda: graph.find(left) == graph.find(right), max_iterations=5, max_nodes=2000)

Each iteration finds the occurrences of all sources, adds the targets, unites them with the sources and rebuilds the
graph. Nothing is ever removed, so that no rule can hide the matches of another.

Invariant: only certified rules, and equalities that were verified otherwise, unite classes. A rule's target, and if it
applies at all, depends only on the types of its variables and the values of its attribute variables; it is computed
once for each combination of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, Protocol

from rlflow.egraph.egraph import ClassId, Target
from rlflow.egraph.term_egraph import TermEGraph
from rlflow.egraph.term_matching import TermMatcher, Values
from rlflow.errors import RuleError, TypeInferenceError
from rlflow.ir.node import Node
from rlflow.ir.tensor_type import TensorType
from rlflow.rules import pattern
from rlflow.rules.expression import Unproven, holds
from rlflow.rules.matching.replacement import admitted
from rlflow.rules.pattern import Apply
from rlflow.rules.plan import Instance, Plan, Step, plan_of
from rlflow.rules.rule import Rule

Types = tuple[TensorType, ...]


class Equality(NamedTuple):
    """An equality that holds: each class in `roots` with an output of the target over the classes of its variables."""

    roots: tuple[ClassId, ...]
    variables: tuple[ClassId, ...]
    target: Target

    def apply(self, graph: TermEGraph) -> None:
        """Unite each output of the source with that of the target."""
        _, outputs = graph.place(self.target, self.variables)
        for root, output in zip(self.roots, outputs, strict=True):
            graph.unite(root, output)


class SourceOfEqualities(Protocol):
    """A source of verified equalities in an e-graph: certified rules, or anything else that verifies them."""

    def equalities(self, graph: TermEGraph) -> Iterator[Equality]:
        """Yield what is equal in the graph as it was last rebuilt; the graph may be changed meanwhile."""


class CompiledRule:
    """A certified rule, ready to be matched. `RuleError` if the rule was not verified."""

    def __init__(self, rule: Rule) -> None:
        if rule.certificate is None:
            raise RuleError(f"rule {rule.id} ({rule.name}) has no certificate and may not prune others")
        self.rule = rule
        self.takes_several = len({term.node for term in rule.source if isinstance(term, Apply)}) > 1
        self._source = TermMatcher(rule.source)
        self.operators = self._source.operators
        self._targets: dict[tuple[Types, Values], Target | None] = {}

    def equalities(self, graph: TermEGraph) -> Iterator[Equality]:
        """Yield what the rule equates in the graph as it was last rebuilt; the graph may be changed meanwhile."""
        for roots, variables, values in self._source.occurrences(graph):
            target = self.target(tuple(map(graph.fact, variables)), values)
            if target is not None:
                yield Equality(roots, variables, target)

    def target(self, types: Types, values: Values = ()) -> Target | None:
        """Return the target for these types of the variables and values of the attribute variables.

        Both are in the order of their occurrence. None if the rule does not apply there.
        """
        if (types, values) not in self._targets:
            self._targets[types, values] = self._instantiated(types, values)
        return self._targets[types, values]

    def _instantiated(self, types: Types, values: Values) -> Target | None:
        rule, type_of = self.rule, dict(zip(self._source.variables, types, strict=True))
        if any(rule.spec(name).literal for name in type_of):
            return None  # an e-graph knows the type of a literal variable, and not its number
        if not admitted(rule, type_of, dict.fromkeys(type_of, True)):
            return None

        instance = Instance(type_of, dict(zip(self._source.attributes, values, strict=True)), {})
        try:
            if not all(holds(condition, instance.scope) for condition in rule.where):
                return None
            source, target = plan_of(rule.source, instance), plan_of(rule.target, instance)
        except (TypeInferenceError, Unproven):
            return None
        return _target(target) if source.types == target.types else None


def _target(plan: Plan) -> Target:
    """Write the plan of a side as a target."""

    def node(step: Step) -> Node:
        attributes = {name: pattern.freeze(value) for name, value in step.attributes.items()}
        return Node(step.op, step.inputs, attributes, step.types, ("",) * len(step.types))

    return Target(tuple(map(node, plan.steps)), plan.outputs)


class CompiledRules:
    """Rules that are matched together; most are skipped, because an e-graph lacks one of their operators."""

    def __init__(self) -> None:
        self._rules: list[CompiledRule] = []
        self._possible: dict[frozenset[str], list[CompiledRule]] = {}

    def add(self, rule: CompiledRule) -> None:
        self._rules.append(rule)
        self._possible.clear()

    def equalities(self, graph: TermEGraph) -> Iterator[Equality]:
        """Yield what the rules equate in the graph as it was last rebuilt; the graph may be changed meanwhile."""
        present = frozenset(graph.nodes_by_operator)
        if present not in self._possible:
            self._possible[present] = [rule for rule in self._rules if rule.operators <= present]
        return chain.from_iterable(rule.equalities(graph) for rule in self._possible[present])


def saturate(
    graph: TermEGraph,
    rules: Sequence[SourceOfEqualities],
    until: Callable[[], bool],
    max_iterations: int,
    max_nodes: int,
) -> bool:
    """Apply all rules wherever they match, again and again, until `until` holds; return True if it does.

    It also ends when nothing changes any more, after `max_iterations`, and once the graph has `max_nodes` nodes.
    """
    graph.rebuild()
    for _ in range(max_iterations):
        if until():
            return True
        for equality in chain.from_iterable(rule.equalities(graph) for rule in rules):
            if len(graph) >= max_nodes:
                break
            equality.apply(graph)
        if not graph.rebuild():
            break
    return until()
