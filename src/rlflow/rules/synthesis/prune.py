"""Which equalities say something new: not one of a smaller rule's instances, nor another one with other names.

Only rules with a certificate may prune. An equality that holds by accident at one shape would otherwise derive every
other one, and true rules would be thrown away as known (docs/measurements.md, 6).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain

from rlflow.errors import TypeInferenceError
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.rules import pattern
from rlflow.rules.egraph.egraph import EGraph
from rlflow.rules.egraph.saturation import CompiledRule, CompiledRules, SourceOfMatches, saturate
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.rule import Rule

Types = Mapping[str, TensorType]
"""Variable -> its type."""


def tree_size(*terms: Term) -> int:
    """Operators, a common part counted as often as it occurs."""
    return sum(isinstance(t, Apply) for term in terms for t in pattern.subterms(term))


def type_of(term: Term, types: Types) -> TensorType:
    """`TypeInferenceError` if the term is not well typed."""
    if isinstance(term, Variable):
        return types[term.name]
    return registry.infer(term.op, dict(term.attributes), [type_of(a, types) for a in term.arguments])[term.output]


def is_commutativity(left: Term, right: Term) -> bool:
    """Whether the terms are op(x, y) and op(y, x)."""
    return (
        isinstance(left, Apply)
        and isinstance(right, Apply)
        and left != right
        and registry.OPERATORS[left.op].commutative
        and (left.op, left.attributes, left.arguments) == (right.op, right.attributes, right.arguments[::-1])
        and all(isinstance(argument, Variable) for argument in left.arguments)
    )


def up_to_names(left: Term, right: Term, types: Types) -> Hashable:
    """Equal for pairs that differ in the names of their variables alone."""
    names: dict[str, tuple[int, TensorType]] = {}

    def key(term: Term) -> Hashable:
        if isinstance(term, Variable):
            return names.setdefault(term.name, (len(names), types[term.name]))
        return term.op, term.attributes, term.output, *map(key, term.arguments)

    return key(left), key(right)


def contains(term: Term, part: Term) -> bool:
    return any(t == part for t in pattern.subterms(term))


class KnownRules:
    """Certified rules, and what follows from them by equality saturation in so many iterations, within an e-graph of so
    many nodes. The order of commutative operands is no difference but in op(x, y) = op(y, x) itself."""

    def __init__(self, max_iterations: int = 5, max_nodes: int = 2000) -> None:
        self.max_iterations, self.max_nodes = max_iterations, max_nodes
        self._rules, self._rules_of_one = CompiledRules(), CompiledRules()
        self._commutativity: dict[str, list[CompiledRule]] = defaultdict(list)

    def add(self, rule: Rule) -> None:
        """`RuleError` if the rule was not verified."""
        source, compiled = rule.source[0], CompiledRule(rule)
        if isinstance(source, Apply) and len(rule.source) == 1 and is_commutativity(source, rule.target[0]):
            self._commutativity[source.op].append(compiled)
            return
        self._rules.add(compiled)
        if not compiled.takes_several:
            self._rules_of_one.add(compiled)

    def explain(self, left: Term, right: Term, types: Types) -> bool:
        """Whether the equality of the sides follows."""
        return self.explain_all([(left, right)], types)

    def explain_all(
        self, pairs: Sequence[tuple[Term, Term]], types: Types, facts: Sequence[SourceOfMatches] = ()
    ) -> bool:
        """Whether all these equalities follow, from the rules and from these facts: a rule of several outputs needs the
        terms of all of them. Of a term that is not well typed, nothing follows.

        Rules that take several nodes have a part in that of several equalities alone: they pair each node with every
        other one, without end, to merge what rules of joins show to be parts of one whole.
        """
        if not all(self._commutes(left, types) for left, right in pairs if is_commutativity(left, right)):
            return False
        graph = EGraph(types)
        try:
            for side in chain.from_iterable(pairs):
                graph.add(side)
        except TypeInferenceError:
            return False
        rules = self._rules if len(pairs) > 1 else self._rules_of_one
        return saturate(graph, [*facts, rules], lambda: _equates(graph, pairs), self.max_iterations, self.max_nodes)

    def lead(self, source: Term, target: Term, types: Types) -> bool:
        """Whether one rule, at one place, leads from the source to the target."""
        return self.lead_all([(source, target)], types)

    def lead_all(self, pairs: Sequence[tuple[Term, Term]], types: Types) -> bool:
        """Whether one rule, at one place, leads from all sources to all targets. What occurs twice is one place.

        `TypeInferenceError` if a source is not well typed.
        """
        if any(is_commutativity(source, target) for source, target in pairs):
            return all(is_commutativity(*pair) and self._commutes(pair[0], types) for pair in pairs)
        graph = EGraph(types)
        for source, _ in pairs:
            graph.add(source)
        graph.rebuild()
        return not _equates(graph, pairs) and any(
            _equates(match.applied(graph), pairs) for match in self._rules.matches(graph)
        )

    def _commutes(self, term: Term, types: Types) -> bool:
        """Whether there is a rule that says so of op(x, y), in which no match would show: both are one node."""
        assert isinstance(term, Apply)
        kinds = tuple(type_of(argument, types) for argument in term.arguments)
        return any(rule.target(kinds) for rule in self._commutativity[term.op])


def _equates(graph: EGraph, pairs: Sequence[tuple[Term, Term]]) -> bool:
    """Whether the graph, which has all left sides, has each right one in the class of its left one."""
    return all(graph.lookup(left) == graph.lookup(right) for left, right in pairs)
