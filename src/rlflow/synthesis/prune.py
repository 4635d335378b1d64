"""Pruning: equalities that say nothing new, as instances of known rules or consequences of several, are dropped.

    known = KnownRules();  known.add(certified_rule)
    known.explain(left, right, types)          # True if equality saturation proves left = right

Relu(a + b) = Relu(b + a) follows from commutativity and congruence, and x * (y + z) = z * x + x * y from
distributivity.

Invariant: only rules with a certificate prune. An equality that holds by accident at one shape would otherwise derive
every other one, and true rules would be dropped as known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain

from rlflow.egraph.saturation import CompiledRule, CompiledRules, Equality, SourceOfEqualities, saturate
from rlflow.egraph.term_egraph import TermEGraph
from rlflow.errors import TypeInferenceError
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.rules import pattern
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.rule import Rule

Types = Mapping[str, TensorType]
"""Variables by name, each with its type."""


def tree_size(*terms: Term) -> int:
    """Count the operators of some terms, a common part as often as it occurs."""
    return sum(isinstance(t, Apply) for term in terms for t in pattern.subterms(term))


def type_of(term: Term, types: Types) -> TensorType:
    """Infer the type of a term; `TypeInferenceError` if it is not well typed."""
    if isinstance(term, Variable):
        return types[term.name]
    return registry.infer(term.op, dict(term.attributes), [type_of(a, types) for a in term.arguments])[term.output]


def is_commutativity(left: Term, right: Term) -> bool:
    """Return True if the terms are op(x, y) and op(y, x), over variables."""
    return (
        isinstance(left, Apply)
        and isinstance(right, Apply)
        and left != right
        and registry.OPERATORS[left.op].commutative
        and (left.op, left.attributes, left.arguments) == (right.op, right.attributes, right.arguments[::-1])
        and all(isinstance(argument, Variable) for argument in left.arguments)
    )


def up_to_names(left: Term, right: Term, types: Types) -> Hashable:
    """Return a key that is equal for pairs that differ in the names of their variables alone."""
    names: dict[str, tuple[int, TensorType]] = {}

    def key(term: Term) -> Hashable:
        if isinstance(term, Variable):
            return names.setdefault(term.name, (len(names), types[term.name]))
        return term.op, term.attributes, term.output, *map(key, term.arguments)

    return key(left), key(right)


def contains(term: Term, part: Term) -> bool:
    """Return True if the term is the part or has it inside."""
    return any(t == part for t in pattern.subterms(term))


class KnownRules:
    """Certified rules, and a decision if an equality follows from them by bounded equality saturation.

    An e-graph does not distinguish the orders of commutative operands, so that op(x, y) = op(y, x) itself is decided by
    rules of commutativity alone.
    """

    def __init__(self, max_iterations: int = 5, max_nodes: int = 2000) -> None:
        self.max_iterations, self.max_nodes = max_iterations, max_nodes
        self._rules, self._rules_of_one = CompiledRules(), CompiledRules()
        self._commutativity: dict[str, list[CompiledRule]] = defaultdict(list)

    def add(self, rule: Rule) -> None:
        """Add a rule; `RuleError` if it has no certificate."""
        source, compiled = rule.source[0], CompiledRule(rule)
        if isinstance(source, Apply) and len(rule.source) == 1 and is_commutativity(source, rule.target[0]):
            self._commutativity[source.op].append(compiled)
            return
        self._rules.add(compiled)
        if not compiled.takes_several:
            self._rules_of_one.add(compiled)

    def explain(self, left: Term, right: Term, types: Types) -> bool:
        """Return True if the equality of the sides follows from the rules."""
        return self.explain_all([(left, right)], types)

    def explain_all(
        self, pairs: Sequence[tuple[Term, Term]], types: Types, facts: Sequence[SourceOfEqualities] = ()
    ) -> bool:
        """Return True if all these equalities follow from the rules and from further `facts`.

        They are decided together, since a rule of several outputs needs the terms of all of them. Nothing follows about
        terms that are not well typed. Rules whose source has several nodes are used only for several equalities: they
        pair each node with every other one, without end, to merge values that rules of joins show to be parts of one.
        """
        if not all(self._commutes(left, types) for left, right in pairs if is_commutativity(left, right)):
            return False

        try:
            graph = _holding(chain.from_iterable(pairs), types)
        except TypeInferenceError:
            return False

        rules = self._rules if len(pairs) > 1 else self._rules_of_one
        return saturate(graph, [*facts, rules], lambda: _equates(graph, pairs), self.max_iterations, self.max_nodes)

    def lead(self, source: Term, target: Term, types: Types) -> bool:
        """Return True if one rule, applied at one place, leads from the source to the target."""
        return self.lead_all([(source, target)], types)

    def lead_all(self, pairs: Sequence[tuple[Term, Term]], types: Types) -> bool:
        """Return True if one rule, applied at one place, leads from all sources to all targets.

        A part that occurs twice is one place. Raises `TypeInferenceError` if a source is not well typed.
        """
        if any(is_commutativity(source, target) for source, target in pairs):
            return all(is_commutativity(*pair) and self._commutes(pair[0], types) for pair in pairs)

        def is_enough(equality: Equality) -> bool:
            alone = _holding(sources, types)
            equality.apply(alone)
            alone.rebuild()
            return _equates(alone, pairs)

        sources = [source for source, _ in pairs]
        graph = _holding(sources, types)
        return not _equates(graph, pairs) and any(map(is_enough, self._rules.equalities(graph)))

    def _commutes(self, term: Term, types: Types) -> bool:
        """Return True if a rule says that op(x, y) commutes; a match cannot show that, as both sides are one e-node."""
        assert isinstance(term, Apply)
        operand_types = tuple(type_of(argument, types) for argument in term.arguments)
        return any(rule.target(operand_types) for rule in self._commutativity[term.op])


def _holding(terms: Iterable[Term], types: Types) -> TermEGraph:
    """Return the e-graph of these terms; `TypeInferenceError` if one is not well typed.

    Equal terms in equal order give equal numbers, so that an equality of one e-graph holds in the other.
    """
    graph = TermEGraph(types)
    for term in terms:
        graph.add(term)
    graph.rebuild()
    return graph


def _equates(graph: TermEGraph, pairs: Sequence[tuple[Term, Term]]) -> bool:
    """Return True if each right side is in the class of its left side; the graph has all left sides."""
    return all(graph.lookup(left) == graph.lookup(right) for left, right in pairs)
