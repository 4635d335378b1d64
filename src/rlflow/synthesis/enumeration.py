"""Enumeration of all expressions up to a number of operators, and the pairs that are equal by their fingerprints.

Level by level, every operator is applied to all expressions found so far. Over a and b with Add and Relu, level 1 gives
a + a, a + b, b + a, ..., Relu(a), Relu(b); b + a has the fingerprint of a + b, which makes the pair (a + b, b + a).
Level 2 gives Relu(a + b) and Relu(Relu(a)), which pairs with Relu(a).

Invariant: only the first expression of a value class is built upon. Whatever can be said of another follows by
congruence, so that equalities with a common part, such as Relu(a + b) = Relu(b + a), and all that extend a smaller one,
never come up (Bansal and Aiken, ASPLOS 2006).

Expressions of one operator and one type of operands are evaluated together, as stacks of field elements; all are
counted and paired in a fixed order, which the order of rules in the library follows.
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
from rlflow.synthesis.fingerprint import Trials, stacked, taken

_BLOCK_ELEMENTS = 1 << 21
"""The most elements of operands that are evaluated together, over all trials, which bounds the memory."""

EXPONENTIAL = registry.having(lambda traits: traits.exponential)
_CANCELLING = registry.having(lambda traits: traits.cancelling)


@dataclass(frozen=True)
class Leaf:
    """A tensor variable; its dimensions are symbols or numbers.

    A leaf with `indices` holds these numbers, by which a Gather selects, and is no operand of anything else.
    """

    name: str
    shape: tuple[int | str, ...]
    indices: tuple[int, ...] = ()


@dataclass(frozen=True)
class OperatorChoice:
    """One output of an operator with its attributes, its number of operands (1 or 2), and the least rank of these.

    `selector` names the leaf of indices that is a further operand.
    """

    op: str
    arity: int
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    min_rank: int = 0
    output: int = 0
    selector: str = ""

    @cached_property
    def written(self) -> tuple[tuple[str, AttributeValue], ...]:
        """All attributes, defaults included, sorted by name."""
        complete = {**registry.OPERATORS[self.op].defaults, **self.attributes}
        return tuple(sorted((name, freeze(value)) for name, value in complete.items()))

    @property
    def commutative(self) -> bool:
        return self.arity == 2 and registry.OPERATORS[self.op].commutative

    def over(self, operands: Sequence[Term]) -> Apply:
        """Return the application to these expressions."""
        selector = (Variable(self.selector),) if self.selector else ()
        return Apply(self.op, self.written, (*operands, *selector), self.output)


class Pair(NamedTuple):
    """Two expressions of equal fingerprint: the first of its class, and another."""

    first: Term
    other: Term


@dataclass(frozen=True)
class Enumeration:
    """The result of an enumeration.

    `pairs` are in the order of their discovery; `enumerated` expressions had values of `classes` classes.
    """

    pairs: tuple[Pair, ...]
    enumerated: int
    classes: int
    types: Mapping[str, TensorType]


_Form = tuple[TensorType, bool]
"""The type of an expression, and if its values have exponents: expressions of one form can be stacked."""


@dataclass(frozen=True)
class _Entry:
    """The first expression of a value class.

    `operators` are the numbers of its distinct applications, `variables` those of its leaves.
    """

    term: Term
    form: _Form
    operators: frozenset[int]
    variables: frozenset[int]

    @property
    def node(self) -> Term:
        return self.term.node if isinstance(self.term, Apply) else self.term


_Combination = tuple[int, ...]
"""The numbers of the entries that an operator is applied to."""


class _Search:
    """The state of an enumeration: entries with their values, and the value class of everything seen."""

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
            self.types[leaf.name] = tensor_type = TensorType("int64" if leaf.indices else "float32", shape)
            if leaf.indices:
                continue
            value = self.trials.leaf(number, draw(shape, rng))
            entry = _Entry(Variable(leaf.name), _form(tensor_type, value), frozenset(), frozenset({number}))
            self._keep(entry, value, self.trials.digests(value)[0], size=0)

    def level(self, size: int, last: bool) -> Iterator[None]:
        """Evaluate all expressions of `size` operators and sort them in; yields after each block."""
        stacks, places = self._stacks()
        for choice in self.choices:
            grouped: dict[tuple[_Form, ...], list[_Combination]] = defaultdict(list)
            for combination in self._combinations(choice, size):
                grouped[tuple(self.entries[i].form for i in combination)].append(combination)

            for forms, combinations in grouped.items():
                operand_types = [operand_type for operand_type, _ in forms]
                tensor_type = self._inferred(choice, operand_types)
                if tensor_type is None:
                    continue

                remaining = iter(combinations)
                elements = len(self.trials.seeds) * sum(operand_type.elements for operand_type in operand_types)
                together = 1 + _BLOCK_ELEMENTS // elements
                while block := list(islice(remaining, together)):
                    operands = [
                        taken(stacks[form], np.array([places[c[slot]] for c in block]), len(self.trials.seeds))
                        for slot, form in enumerate(forms)
                    ]
                    try:
                        arguments = [*operands, *self._selected(choice)]
                        value = self.trials.evaluate(choice.op, dict(choice.written), arguments, choice.output)
                    except (NoExponentError, IndexError):  # the field has no such value, or a Gather no such element
                        break
                    self._sort_in(choice, block, tensor_type, value, size, last)
                    yield

    def _inferred(self, choice: OperatorChoice, operands: Sequence[TensorType]) -> TensorType | None:
        """Infer the type of an application, None if it is not well typed."""
        if any(len(operand.shape or ()) < choice.min_rank for operand in operands):
            return None
        selectors = [self.types[choice.selector]] if choice.selector else []
        try:
            return registry.infer(choice.op, dict(choice.written), [*operands, *selectors])[choice.output]
        except TypeInferenceError:
            return None

    def _selected(self, choice: OperatorChoice) -> list[np.ndarray]:
        return [self.indices[choice.selector]] if choice.selector else []

    def _stacks(self) -> tuple[dict[_Form, FieldArray], dict[int, int]]:
        """Stack the values of all entries by their form; also return the place of each entry in its stack."""
        members: dict[_Form, list[int]] = defaultdict(list)
        for index, entry in enumerate(self.entries):
            members[entry.form].append(index)
        stacks = {form: stacked([self.values[i] for i in indices]) for form, indices in members.items()}
        return stacks, {i: place for indices in members.values() for place, i in enumerate(indices)}

    def _combinations(self, choice: OperatorChoice, size: int) -> Iterator[_Combination]:
        """Yield the operands for expressions of `size` operators, each combination once in all levels."""
        seen = self.seen[choice.over(())]
        for combination in self._ordered(choice, size):
            if combination not in seen:
                seen.add(combination)
                yield combination

    def _ordered(self, choice: OperatorChoice, size: int) -> Iterator[_Combination]:
        """Yield combinations of operands whose distinct operators, with this one, are `size`.

        Commutative operands come in one order, except at size 1, where commutativity itself is to be found. An operand
        may be part of the other one, or both may be outputs of one operator: the common part then counts once.
        """
        one_order = choice.commutative and size > 1
        if choice.arity == 1:
            yield from ((i,) for i in self.by_size[size - 1])
            return
        for left in range(size):
            for i in self.by_size[left]:
                yield from ((i, j) for j in self.by_size[size - 1 - left] if i <= j or not one_order)

        # Operands that share operators: `i` has all of them, and the other operand is a part of it or a further output.
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
        tensor_type: TensorType,
        value: FieldArray,
        size: int,
        last: bool,
    ) -> None:
        """Pair each expression of a block with the first of its value class, or keep it as a new one.

        Expressions of the last level are not built upon, so that only their terms are kept.
        """
        self.enumerated += len(block)
        constant, idle = self.trials.constant(value), self.trials.idle(value)
        for number, (combination, digest) in enumerate(zip(block, self.trials.digests(value), strict=True)):
            if constant[number]:
                continue  # as x - x is: nothing is gained by calling it anything else
            operands = [self.entries[i] for i in combination]
            term = choice.over([operand.term for operand in operands])
            known = self.classes.get((tensor_type, digest))
            if known is not None:
                self.pairs.append(Pair(self.entries[known].term if isinstance(known, int) else known, term))
                continue

            variables = frozenset[int]().union(*(operand.variables for operand in operands))
            if idle[number].any() and not variables.isdisjoint(np.flatnonzero(idle[number]).tolist()):
                continue  # a variable cancels, so that nothing built on this expression says anything new
            if last:
                self.classes[tensor_type, digest] = term
                continue

            operators = frozenset({len(self.entries)}).union(*(operand.operators for operand in operands))
            own = taken(value, np.array([number]), len(self.trials.seeds))
            self._keep(_Entry(term, _form(tensor_type, own), operators, variables), own, digest, size)

    def _keep(self, entry: _Entry, value: FieldArray, digest: bytes, size: int) -> None:
        self.classes[entry.form[0], digest] = len(self.entries)
        self.by_size[size].append(len(self.entries))
        self.outputs_of[entry.node].append(len(self.entries))
        self.entries.append(entry)
        self.values.append(value)


def _form(tensor_type: TensorType, value: FieldArray) -> _Form:
    return tensor_type, value.exponent is not None


def enumerate_pairs(
    leaves: Sequence[Leaf],
    choices: Sequence[OperatorChoice],
    dimensions: Mapping[str, int],
    max_operators: int,
    trials: int,
    rng: np.random.Generator,
    on_block: Callable[[], None] = lambda: None,
) -> Enumeration:
    """Find pairs of expressions over `leaves` with at most `max_operators` operators and equal fingerprints.

    `dimensions` gives each symbol its number: different ones, none of them 1, or equalities come up that hold only at
    equal sizes. `trials` is the number of random points. Raises `InputError` for a symbol without a number.
    """
    missing = {d for leaf in leaves for d in leaf.shape if isinstance(d, str)} - dimensions.keys()
    if missing:
        raise InputError(f"the leaves use dimensions {sorted(missing)}, for which `dimensions` has no number")
    search = _Search(leaves, choices, dimensions, trials, rng)
    for size in range(1, max_operators + 1):
        for _ in search.level(size, last=size == max_operators):
            on_block()
    return Enumeration(tuple(search.pairs), search.enumerated, len(search.classes), search.types)
