"""The variants of a rule's source: one for each order of the operands of commutative operators.

Relu(Add(x, Mul(y, z))) has four orders. Those that are the same rule with other names are dropped: if the target treats
y and z alike, two are left. With the orders laid out, matching is a plain walk down from a root. If one of two
operands is a number, no variant is needed: the walk finds the number by itself, since it is a constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from rlflow.errors import RuleError
from rlflow.ops import registry
from rlflow.rules import pattern
from rlflow.rules.expression import bounded_in
from rlflow.rules.matching.bounds import SIGHT
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.rule import Rule


@dataclass(frozen=True)
class Variant:
    """A rule with its commutative operands in one order."""

    rule: Rule
    source: tuple[Apply, ...]

    @cached_property
    def roots(self) -> tuple[Apply, ...]:
        """The applications whose outputs are replaced."""
        return tuple(dict.fromkeys(s.node for s in self.source))

    @cached_property
    def depth(self) -> int:
        """The number of nodes on the longest way down from a root that decide if the variant matches."""
        return max(map(_depth, self.source)) + (SIGHT if self.bounded else 0)

    @cached_property
    def bounded(self) -> tuple[str, ...]:
        """The variables of which the rule wants to know that they are bounded."""
        return tuple(sorted(bounded_in(self.rule.where)))

    @cached_property
    def variables(self) -> tuple[str, ...]:
        return pattern.variables(*self.source)

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """The variables whose numbers the rule may use."""
        return tuple(name for name in self.variables if self.rule.spec(name).literal)

    @cached_property
    def anchor(self) -> str:
        """A variable that every root reads, through whose consumers the other roots are found from one."""
        shared = set.intersection(*(set(pattern.variables(s)) for s in self.source))
        anchors = [v for v in pattern.variables(self.source[0]) if v in shared]
        if not anchors:
            raise RuleError(f"rule {self.rule.name!r}: its outputs share no variable, so they are separate rules")
        return anchors[0]

    @cached_property
    def ascents(self) -> tuple[tuple[str, ...], ...]:
        """The operators from the anchor (exclusive) up to each root (inclusive)."""
        return tuple(_path(root, self.anchor)[0] for root in self.roots)

    @cached_property
    def descents(self) -> tuple[tuple[int, ...], ...]:
        """The places of operands from each root down to the anchor."""
        return tuple(_path(root, self.anchor)[1] for root in self.roots)

    @cached_property
    def symmetric(self) -> bool:
        """True if the roots look alike, so that every set of roots is found once in each order."""
        shapes_of_roots = {repr(_up_to_names((s,), ())) for s in self.source}
        return len(self.roots) > 1 and len(shapes_of_roots) == 1


def _depth(term: Term) -> int:
    return 1 + max(map(_depth, term.arguments), default=0) if isinstance(term, Apply) else 0


def _path(term: Term, name: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the operators up from a variable's first occurrence, and the places of operands down to it."""
    if isinstance(term, Variable):
        return (), ()
    place, argument = next((i, a) for i, a in enumerate(term.arguments) if name in pattern.variables(a))
    above, below = _path(argument, name)
    return (*above, term.op), (place, *below)


def compile_variants(rule: Rule) -> tuple[Variant, ...]:
    """Return a variant for each order of commutative operands that is not the same rule again.

    Raises `RuleError` if the rule has several roots that might feed each other: a variable that not all of them read
    must be constant, so that merging them can never close a cycle.
    """
    if len({s.node for s in rule.source if isinstance(s, Apply)}) > 1:
        shared = set.intersection(*(set(pattern.variables(s)) for s in rule.source))
        loose = [v for v in pattern.variables(*rule.source) if v not in shared and not rule.spec(v).constant]
        if loose:
            raise RuleError(f"rule {rule.name!r}: {loose} must be constant, or its outputs might feed each other")

        if bounded_in(rule.where):
            raise RuleError(f"rule {rule.name!r}: where outputs are replaced together, nothing is known of bounds")

    firsts: dict[Any, tuple[Term, ...]] = {}
    for source in product(*(_orders(s) for s in rule.source)):
        firsts.setdefault(_up_to_names(source, rule.target), source)
    return tuple(Variant(rule, tuple(s for s in source if isinstance(s, Apply))) for source in firsts.values())


def number_at(term: Apply) -> int | None:
    """Return the place of the operand that is a number, if the operator is binary and commutative; else None."""
    if not registry.OPERATORS[term.op].commutative or len(term.arguments) != 2:
        return None
    return next((i for i, a in enumerate(term.arguments) if not pattern.variables(a)), None)


def _orders(term: Term) -> Iterator[Term]:
    """Yield the term in each order of commutative operands, the given one first."""
    if isinstance(term, Variable):
        yield term
        return
    for arguments in product(*(tuple(_orders(a)) for a in term.arguments)):
        yield Apply(term.op, term.attributes, arguments, term.output)
        commutes = registry.OPERATORS[term.op].commutative and len(arguments) == 2
        if commutes and arguments[0] != arguments[1] and number_at(term) is None:
            yield Apply(term.op, term.attributes, arguments[::-1], term.output)


def _up_to_names(source: Sequence[Term], target: Sequence[Term]) -> Any:
    """Return a key that is equal for rules that differ in names, or in the order of operands in the target, alone."""
    names = {v: i for i, v in enumerate(pattern.variables(*source))}

    def key(term: Term, sort: bool) -> Any:
        if isinstance(term, Variable):
            return (0, names[term.name])
        arguments = [key(a, sort) for a in term.arguments]
        if sort and registry.OPERATORS[term.op].commutative:
            arguments.sort(key=repr)
        return (1, term.op, term.attributes, tuple(arguments), term.output)

    return tuple(key(s, False) for s in source), tuple(key(t, True) for t in target)
