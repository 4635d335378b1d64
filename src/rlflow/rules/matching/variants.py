"""The forms in which a rule's source occurs in a graph: one for each order of its commutative operands.

With the orders laid out, matching is a plain walk down from a root. Only where one operand is a number does the walk
itself see in which order they are, as the number is a constant.
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
        return max(map(_depth, self.source))

    @cached_property
    def variables(self) -> tuple[str, ...]:
        return pattern.variables(*self.source)

    @cached_property
    def anchor(self) -> str:
        """A variable that every root reads: from one root the others are found through its consumers."""
        shared = set.intersection(*(set(pattern.variables(s)) for s in self.source))
        anchors = [v for v in pattern.variables(self.source[0]) if v in shared]
        if not anchors:
            raise RuleError(f"rule {self.rule.name!r}: its outputs share no variable, so they are separate rules")
        return anchors[0]

    @cached_property
    def ascents(self) -> tuple[tuple[str, ...], ...]:
        """For each root, the operators from the anchor (exclusive) up to the root (inclusive)."""
        return tuple(_path(root, self.anchor)[0] for root in self.roots)

    @cached_property
    def descents(self) -> tuple[tuple[int, ...], ...]:
        """For each root, the operand numbers from the root down to the anchor."""
        return tuple(_path(root, self.anchor)[1] for root in self.roots)

    @cached_property
    def symmetric(self) -> bool:
        """Whether the roots look alike, so that every set of roots is found once in each order."""
        return len(self.roots) > 1 and len({repr(_up_to_names((s,), ())) for s in self.source}) == 1


def _depth(term: Term) -> int:
    return 1 + max(map(_depth, term.arguments), default=0) if isinstance(term, Apply) else 0


def _path(term: Term, name: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Operators up from the variable's first occurrence, and operand numbers down to it."""
    if isinstance(term, Variable):
        return (), ()
    place, argument = next((i, a) for i, a in enumerate(term.arguments) if name in pattern.variables(a))
    above, below = _path(argument, name)
    return (*above, term.op), (place, *below)


def compile_variants(rule: Rule) -> tuple[Variant, ...]:
    """All orders of commutative operands that are not the same rule again.

    `RuleError` if the rule has several roots that could feed each other: whatever not all of them read must
    be constant, so that merging them can never close a cycle.
    """
    if len({s.node for s in rule.source if isinstance(s, Apply)}) > 1:
        shared = set.intersection(*(set(pattern.variables(s)) for s in rule.source))
        loose = [v for v in pattern.variables(*rule.source) if v not in shared and not rule.spec(v).constant]
        if loose:
            raise RuleError(f"rule {rule.name!r}: {loose} must be constant, or its outputs might feed each other")
    firsts: dict[Any, tuple[Term, ...]] = {}
    for source in product(*(_orders(s) for s in rule.source)):
        firsts.setdefault(_up_to_names(source, rule.target), source)
    return tuple(Variant(rule, tuple(s for s in source if isinstance(s, Apply))) for source in firsts.values())


def number_at(term: Apply) -> int | None:
    """The place of the number beside another operand, where their order does not matter."""
    if not registry.OPERATORS[term.op].commutative or len(term.arguments) != 2:
        return None
    return next((i for i, a in enumerate(term.arguments) if not pattern.variables(a)), None)


def _orders(term: Term) -> Iterator[Term]:
    if isinstance(term, Variable):
        yield term
        return
    for arguments in product(*(tuple(_orders(a)) for a in term.arguments)):
        yield Apply(term.op, term.attributes, arguments, term.output)
        turns = registry.OPERATORS[term.op].commutative and len(arguments) == 2 and arguments[0] != arguments[1]
        if turns and number_at(term) is None:
            yield Apply(term.op, term.attributes, arguments[::-1], term.output)


def _up_to_names(source: Sequence[Term], target: Sequence[Term]) -> Any:
    names = {v: i for i, v in enumerate(pattern.variables(*source))}

    def key(term: Term, sort: bool) -> Any:
        if isinstance(term, Variable):
            return (0, names[term.name])
        arguments = [key(a, sort) for a in term.arguments]
        if sort and registry.OPERATORS[term.op].commutative:
            arguments.sort(key=repr)
        return (1, term.op, term.attributes, tuple(arguments), term.output)

    return tuple(key(s, False) for s in source), tuple(key(t, True) for t in target)
