"""Which equalities say something new: not one of a smaller rule's instances, nor another one with other names.

Only rules with a certificate may prune. An equality that holds by accident at one shape would otherwise derive every
other one, and true rules would be thrown away as known (research/rule_generation.md, 1.4).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice, product

from rlflow.errors import RuleError, TypeInferenceError
from rlflow.ir.graph import AttributeValue
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.rules import pattern
from rlflow.rules.expression import Scope, Unproven, evaluate, holds
from rlflow.rules.match import admitted
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.rule import Rule

Types = Mapping[str, TensorType]
"""Variable -> its type."""


def tree_size(*terms: Term) -> int:
    """Operators, a common part counted as often as it occurs."""
    return sum(isinstance(t, Apply) for term in terms for t in pattern.subterms(term))


def normal(term: Term) -> Term:
    """Operands of commutative operators in one order: equal for terms that differ in that order alone."""

    def ordered(part: Term) -> Term:
        if isinstance(part, Variable) or not registry.OPERATORS[part.op].commutative:
            return part
        return replace(part, arguments=tuple(sorted(part.arguments, key=repr)))

    return pattern.rebuilt(term, ordered)


def type_of(term: Term, types: Types) -> TensorType:
    """`TypeInferenceError` if the term is not well typed."""
    if isinstance(term, Variable):
        return types[term.name]
    return registry.infer(term.op, dict(term.attributes), [type_of(a, types) for a in term.arguments])[term.output]


def is_commutativity(left: Term, right: Term) -> bool:
    """Whether the terms are op(x, y) and op(y, x)."""
    return left != right and tree_size(left) == 1 and normal(left) == normal(right)


def canonical_pair(left: Term, right: Term, types: Types) -> tuple[str, str]:
    """Equal for pairs that differ in names, in the order of commutative operands, or in which side is which."""
    if is_commutativity(left, right):
        return min(_named(left, right, types), _named(right, left, types))
    return min(
        _named(order, normal(other), types) for one, other in ((left, right), (right, left)) for order in _orders(one)
    )


def quick_pair(left: Term, right: Term, types: Types) -> tuple[str, str]:
    """As `canonical_pair`, but only for the names: cheap, and most repetitions differ in nothing else."""
    return _named(left, right, types, sort=False)


def _named(left: Term, right: Term, types: Types, sort: bool = True) -> tuple[str, str]:
    names: dict[str, Term] = {}
    for name in pattern.variables(left, right):
        names[name] = Variable(f"{len(names)}{types[name].shape}")
    commutes = is_commutativity(left, right)
    renamed = pattern.substitute(right, names)
    return repr(pattern.substitute(left, names)), repr(normal(renamed) if sort and not commutes else renamed)


def _orders(term: Term) -> Iterator[Term]:
    if isinstance(term, Variable):
        yield term
        return
    for arguments in product(*(tuple(_orders(a)) for a in term.arguments)):
        yield Apply(term.op, term.attributes, arguments, term.output)
        if registry.OPERATORS[term.op].commutative and len(arguments) == 2 and arguments[0] != arguments[1]:
            yield Apply(term.op, term.attributes, arguments[::-1], term.output)


def contains(term: Term, part: Term) -> bool:
    return any(t == part for t in pattern.subterms(term))


class KnownRules:
    """Certified rules of one output, as rewrites of terms. From each side of an equality they are followed for
    `max_rewrites`, and `max_terms` are kept of each."""

    def __init__(self, max_rewrites: int = 2, max_terms: int = 32) -> None:
        self.max_rewrites, self.max_terms = max_rewrites, max_terms
        self._by_operator: dict[str, list[Rule]] = defaultdict(list)

    def add(self, rule: Rule) -> None:
        """`RuleError` if the rule was not verified."""
        if rule.certificate is None:
            raise RuleError(f"rule {rule.id} ({rule.name}) has no certificate and may not prune others")
        for source in rule.source:
            assert isinstance(source, Apply)
            self._by_operator[source.op].append(rule)

    def explain(self, left: Term, right: Term, types: Types) -> bool:
        """Whether the sides are instances of one rule, or both lead to one term in a few rewrites."""
        if is_commutativity(left, right):
            return self.lead(left, right, types)
        reached = [{normal(side)} for side in (left, right)]
        frontiers = [list(side) for side in reached]
        for _ in range(self.max_rewrites):
            for own, frontier in zip(reached, frontiers, strict=True):
                changed = (normal(t) for term in frontier for t in self.rewrites(term, types))
                frontier[:] = list(islice((t for t in dict.fromkeys(changed) if t not in own), self.max_terms))
                own.update(frontier)
                if not reached[0].isdisjoint(reached[1]):
                    return True
        return False

    def lead(self, source: Term, target: Term, types: Types) -> bool:
        """Whether one rule leads from the source to the target, but for the order of commutative operands."""
        if is_commutativity(source, target):
            return target in self.rewrites(source, types)
        return normal(target) in map(normal, self.rewrites(source, types))

    def rewrites(self, term: Term, types: Types) -> Iterator[Term]:
        """The term after one rewrite, at each place where a rule applies."""
        if isinstance(term, Variable):
            return
        for rule in self._by_operator[term.op]:
            yield from _rewritten(rule, term, types)
        for place, argument in enumerate(term.arguments):
            for changed in self.rewrites(argument, types):
                arguments = (*term.arguments[:place], changed, *term.arguments[place + 1 :])
                yield Apply(term.op, term.attributes, arguments, term.output)


def _rewritten(rule: Rule, term: Term, types: Types) -> Iterator[Term]:
    for tensors, attributes in _bindings(rule.source[0], term, {}, {}):
        try:
            kinds = {name: type_of(bound, types) for name, bound in tensors.items()}
            scope = Scope(kinds, attributes)
            if not admitted(rule, kinds, dict.fromkeys(kinds, True)):
                continue
            if not all(holds(condition, scope) for condition in rule.where):
                continue
            target = _instantiated(rule.target[0], tensors, scope)
            if type_of(target, types) == type_of(term, types):
                yield target
        except (TypeInferenceError, Unproven):
            continue


_Tensors = dict[str, Term]
_Attributes = dict[str, AttributeValue]


def _bindings(
    source: Term, term: Term, tensors: _Tensors, attributes: _Attributes
) -> Iterator[tuple[_Tensors, _Attributes]]:
    """All ways in which the term is an instance of the source, given some bindings."""
    if isinstance(source, Variable):
        if tensors.get(source.name, term) == term:
            yield tensors | {source.name: term}, attributes
        return
    if isinstance(term, Variable) or (term.op, term.output) != (source.op, source.output):
        return
    if len(term.arguments) != len(source.arguments):
        return
    present = dict(term.attributes)
    for name, wanted in source.attributes:
        if isinstance(wanted, str) and wanted.startswith("?"):
            attributes = {wanted: present.get(name, ""), **attributes}
            wanted = attributes[wanted]
        if present.get(name) != wanted:
            return
    orders: Iterable[tuple[Term, ...]] = [term.arguments]
    if registry.OPERATORS[term.op].commutative and len(term.arguments) == 2:
        orders = dict.fromkeys([term.arguments, term.arguments[::-1]])
    for order in orders:
        yield from _all_bindings(source.arguments, order, tensors, attributes)


def _all_bindings(
    sources: tuple[Term, ...], terms: tuple[Term, ...], tensors: _Tensors, attributes: _Attributes
) -> Iterator[tuple[_Tensors, _Attributes]]:
    if not sources:
        yield tensors, attributes
        return
    for bound, known in _bindings(sources[0], terms[0], tensors, attributes):
        yield from _all_bindings(sources[1:], terms[1:], bound, known)


def _instantiated(target: Term, tensors: Mapping[str, Term], scope: Scope) -> Term:
    def computed(part: Term) -> Term:
        if isinstance(part, Variable):
            return tensors[part.name]
        attributes = tuple((k, pattern.freeze(evaluate(pattern.thaw(v), scope))) for k, v in part.attributes)
        return replace(part, attributes=attributes)

    return pattern.rebuilt(target, computed)
