"""All expressions up to a number of operators, told apart by their values.

Only the first expression of a value class is built upon: whatever can be said of another follows by congruence, so
that equalities with a common part, and all that extend a smaller one, never come up (Bansal and Aiken, 2006).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np

from rlflow.errors import InputError, TypeInferenceError
from rlflow.ir.node import AttributeValue
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.ops.field import FieldArray, FieldDomain, NoExponentError
from rlflow.rules.pattern import Apply, Term, Variable, freeze
from rlflow.rules.synthesis.fingerprint import Trials, stacked, taken

_BLOCK_ELEMENTS = 1 << 21
"""Of the operands of expressions evaluated together, over all trials: bounds the memory."""

EXPONENTIAL = registry.having(lambda traits: traits.exponential)
_CANCELLING = registry.having(lambda traits: traits.cancelling)


@dataclass(frozen=True)
class Leaf:
    """A tensor variable; its dimensions are symbols or numbers. `indices` by which a Gather selects are the same at all
    points, and no operand of anything else.
    """

    name: str
    shape: tuple[int | str, ...]
    indices: tuple[int, ...] = ()


@dataclass(frozen=True)
class OperatorChoice:
    """One output of an operator with its attributes, its number of operands (1 or 2), and the rank that these must
    have. `selector` names the indices that are its operand besides.
    """

    op: str
    arity: int
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    min_rank: int = 0
    output: int = 0
    selector: str = ""

    @cached_property
    def written(self) -> tuple[tuple[str, AttributeValue], ...]:
        complete = {**registry.OPERATORS[self.op].defaults, **self.attributes}
        return tuple(sorted((name, freeze(value)) for name, value in complete.items()))

    @property
    def commutative(self) -> bool:
        return self.arity == 2 and registry.OPERATORS[self.op].commutative

    def over(self, operands: Sequence[Term]) -> Apply:
        """The application to these expressions."""
        selector = (Variable(self.selector),) if self.selector else ()
        return Apply(self.op, self.written, (*operands, *selector), self.output)


class Pair(NamedTuple):
    """Two expressions of equal fingerprint: the first of its class, and another."""

    first: Term
    other: Term


@dataclass(frozen=True)
class Enumeration:
    """What was found: `pairs` in the order of their discovery."""

    pairs: tuple[Pair, ...]
    enumerated: int
    classes: int
    types: Mapping[str, TensorType]


@dataclass(frozen=True)
class _Entry:
    """The first expression of a value class. `operators` are its distinct applications, `variables` the numbers of its
    leaves.
    """

    term: Term
    kind: tuple[TensorType, bool]
    operators: frozenset[int]
    variables: frozenset[int]

    @property
    def node(self) -> Term:
        return self.term.node if isinstance(self.term, Apply) else self.term


_Combination = tuple[int, ...]
"""Entries that an operator is applied to."""


class _Search:
    def __init__(
        self,
        leaves: Sequence[Leaf],
        choices: Sequence[OperatorChoice],
        dimensions: Mapping[str, int],
        trials: int,
        rng: np.random.Generator,
    ) -> None:
        cancelling = any(choice.op in _CANCELLING for choice in choices)
        self.trials = Trials.draw(trials, rng, variables=len(leaves) if cancelling else 0)
        self.choices = choices
        domain = FieldDomain(self.trials.seeds)
        draw = domain.draw if any(c.op in EXPONENTIAL for c in choices) else domain.draw_residues
        self.entries: list[_Entry] = []
        self.values: list[FieldArray] = []
        self.classes: dict[tuple[TensorType, bytes], int | Term] = {}
        self.by_size: dict[int, list[int]] = defaultdict(list)
        self.outputs_of: dict[Term, list[int]] = defaultdict(list)
        self.seen: dict[Apply, set[_Combination]] = defaultdict(set)
        self.pairs: list[Pair] = []
        self.enumerated = 0
        self.types: dict[str, TensorType] = {}
        self.indices = {leaf.name: np.array(leaf.indices) for leaf in leaves if leaf.indices}
        for number, leaf in enumerate(leaves):
            shape = tuple(dimensions[d] if isinstance(d, str) else d for d in leaf.shape)
            self.types[leaf.name] = kind = TensorType("int64" if leaf.indices else "float32", shape)
            if leaf.indices:
                continue
            value = self.trials.leaf(number, draw(shape, rng))
            entry = _Entry(Variable(leaf.name), _kind(kind, value), frozenset(), frozenset({number}))
            self._keep(entry, value, self.trials.digests(value)[0], size=0)

    def level(self, size: int, last: bool) -> Iterator[None]:
        """All expressions of `size` operators; yields after each block."""
        stacks, places = self._stacks()
        for choice in self.choices:
            grouped: dict[tuple[tuple[TensorType, bool], ...], list[_Combination]] = defaultdict(list)
            for combination in self._combinations(choice, size):
                grouped[tuple(self.entries[i].kind for i in combination)].append(combination)
            for kinds, combinations in grouped.items():
                kind = self._inferred(choice, [k for k, _ in kinds])
                if kind is None:
                    continue
                remaining = iter(combinations)
                together = 1 + _BLOCK_ELEMENTS // (len(self.trials.seeds) * sum(k.elements for k, _ in kinds))
                while block := list(islice(remaining, together)):
                    operands = [
                        taken(stacks[k], np.array([places[c[slot]] for c in block]), len(self.trials.seeds))
                        for slot, k in enumerate(kinds)
                    ]
                    try:
                        arguments = [*operands, *self._selected(choice)]
                        value = self.trials.evaluate(choice.op, dict(choice.written), arguments, choice.output)
                    except (NoExponentError, IndexError):  # no such value, or no such element
                        break
                    self._sort_in(choice, block, kind, value, size, last)
                    yield

    def _inferred(self, choice: OperatorChoice, kinds: Sequence[TensorType]) -> TensorType | None:
        if any(len(kind.shape or ()) < choice.min_rank for kind in kinds):
            return None
        selectors = [self.types[choice.selector]] if choice.selector else []
        try:
            return registry.infer(choice.op, dict(choice.written), [*kinds, *selectors])[choice.output]
        except TypeInferenceError:
            return None

    def _selected(self, choice: OperatorChoice) -> list[np.ndarray]:
        return [self.indices[choice.selector]] if choice.selector else []

    def _stacks(self) -> tuple[dict[tuple[TensorType, bool], FieldArray], dict[int, int]]:
        members: dict[tuple[TensorType, bool], list[int]] = defaultdict(list)
        for index, entry in enumerate(self.entries):
            members[entry.kind].append(index)
        stacks = {kind: stacked([self.values[i] for i in indices]) for kind, indices in members.items()}
        return stacks, {i: place for indices in members.values() for place, i in enumerate(indices)}

    def _combinations(self, choice: OperatorChoice, size: int) -> Iterator[_Combination]:
        seen = self.seen[choice.over(())]
        for combination in self._ordered(choice, size):
            if combination not in seen:
                seen.add(combination)
                yield combination

    def _ordered(self, choice: OperatorChoice, size: int) -> Iterator[_Combination]:
        """Commutative operands come in one order, but for single operators, where commutativity shows itself. With
        an expression and one of its own parts as operands, or two outputs of one operator, the common part counts once.
        """
        one_order = choice.commutative and size > 1
        if choice.arity == 1:
            yield from ((i,) for i in self.by_size[size - 1])
            return
        for left in range(size):
            for i in self.by_size[left]:
                yield from ((i, j) for j in self.by_size[size - 1 - left] if i <= j or not one_order)
        for i in self.by_size[size - 1] if size > 1 else ():
            for j in sorted(self.entries[i].operators):
                yield (min(i, j), max(i, j))
                if not one_order and i != j:
                    yield (max(i, j), min(i, j))
            yield from ((i, j) for j in self.outputs_of[self.entries[i].node] if i < j or not one_order)

    def _sort_in(
        self,
        choice: OperatorChoice,
        block: Sequence[_Combination],
        kind: TensorType,
        value: FieldArray,
        size: int,
        last: bool,
    ) -> None:
        self.enumerated += len(block)
        constant, idle = self.trials.constant(value), self.trials.idle(value)
        for number, (combination, digest) in enumerate(zip(block, self.trials.digests(value), strict=True)):
            if constant[number]:
                continue
            operands = [self.entries[i] for i in combination]
            term = choice.over([operand.term for operand in operands])
            known = self.classes.get((kind, digest))
            if known is not None:
                self.pairs.append(Pair(self.entries[known].term if isinstance(known, int) else known, term))
                continue
            variables = frozenset[int]().union(*(operand.variables for operand in operands))
            if idle[number].any() and not variables.isdisjoint(np.flatnonzero(idle[number]).tolist()):
                continue  # a variable cancels: whatever is built on it says nothing new
            if last:
                self.classes[kind, digest] = term
                continue
            operators = frozenset({len(self.entries)}).union(*(operand.operators for operand in operands))
            own = taken(value, np.array([number]), len(self.trials.seeds))
            self._keep(_Entry(term, _kind(kind, own), operators, variables), own, digest, size)

    def _keep(self, entry: _Entry, value: FieldArray, digest: bytes, size: int) -> None:
        self.classes[entry.kind[0], digest] = len(self.entries)
        self.by_size[size].append(len(self.entries))
        self.outputs_of[entry.node].append(len(self.entries))
        self.entries.append(entry)
        self.values.append(value)


def _kind(kind: TensorType, value: FieldArray) -> tuple[TensorType, bool]:
    return kind, value.exponent is not None


def enumerate_pairs(
    leaves: Sequence[Leaf],
    choices: Sequence[OperatorChoice],
    dimensions: Mapping[str, int],
    max_operators: int,
    trials: int,
    rng: np.random.Generator,
    on_block: Callable[[], None] = lambda: None,
) -> Enumeration:
    """All pairs of expressions over `leaves` with at most `max_operators` operators and equal fingerprints.

    `dimensions` gives each symbol its number: different ones, none of them 1, or accidents come up.
    """
    missing = {d for leaf in leaves for d in leaf.shape if isinstance(d, str)} - dimensions.keys()
    if missing:
        raise InputError(f"the leaves use dimensions {sorted(missing)} that have no number")
    search = _Search(leaves, choices, dimensions, trials, rng)
    for size in range(1, max_operators + 1):
        for _ in search.level(size, last=size == max_operators):
            on_block()
    return Enumeration(tuple(search.pairs), search.enumerated, len(search.classes), search.types)
