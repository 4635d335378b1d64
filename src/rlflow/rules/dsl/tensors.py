"""The two sides of a rule: tensors that a rule names, and what operators make of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from rlflow.errors import RuleError
from rlflow.rules import pattern
from rlflow.rules.dsl.values import Condition, Value, lifted
from rlflow.rules.pattern import Apply, Term, Variable


class Tensor:
    """A tensor of a rule: one that it names, or an operator's result.

    Of a named tensor, conditions and attributes may use the dimensions; which they are is known where the rule matches.
    """

    def __init__(self, term: Term) -> None:
        self.term = term

    def dim(self, axis: int | Value) -> Value:
        """The length of an axis, which is counted from the end where it is negative."""
        return Value(["dim", self._name, lifted(axis).json], "int")

    @property
    def shape(self) -> Value:
        """The list of all dimensions."""
        return Value(["shape", self._name], "ints")

    @property
    def rank(self) -> Value:
        """The number of axes."""
        return Value(["rank", self._name], "int")

    @property
    def elements(self) -> Value:
        """The product of all dimensions."""
        return Value(["elements", self._name], "int")

    def elements_from(self, axis: int) -> Value:
        """The product of the dimensions from this axis on."""
        return Value(["elements", self._name, axis], "int")

    def last_two_swapped(self) -> Value:
        """The permutation that exchanges the last two axes and leaves all others."""
        return Value(["last_two_swapped", self.rank.json], "ints")

    @property
    def is_float(self) -> Condition:
        """The elements are floating-point numbers."""
        return Condition(["float", self._name])

    @property
    def is_unsigned(self) -> Condition:
        """The elements are whole numbers of a type that has no negative ones."""
        return Condition(["unsigned", self._name])

    @property
    def is_bounded(self) -> Condition:
        """No element is above 1e4, nor below -1e4: the graph proves that this is no mask (rules/matching/bounds.py)."""
        return Condition(["bounded", self._name])

    @property
    def number(self) -> Value:
        """The value of a tensor that is declared LITERAL, as an attribute's value."""
        return Value(["value", self._name], "float")

    @property
    def index(self) -> Value:
        """The value of a LITERAL that counts elements: what a Gather selects by."""
        return Value(["value", self._name], "int")

    def __getitem__(self, output: int) -> Tensor:
        """The output of this number, of an operator that has several."""
        if not isinstance(self.term, Apply):
            raise RuleError(f"{self._name}[{output}]: only an operator has several outputs")
        return Tensor(Apply(self.term.op, self.term.attributes, self.term.arguments, output))

    def __iter__(self) -> object:
        raise RuleError("an operator's outputs are not counted here: take each by its number, or use `split`")

    @property
    def _name(self) -> str:
        if not isinstance(self.term, Variable):
            raise RuleError(
                f"the type of {pattern.show(self.term)} is not at hand: a rule may use the dimensions of what it names"
            )
        return self.term.name


Operand: TypeAlias = Tensor | Value | float
"""What an operator is applied to. A number, or an attribute that is one, stands for a stored scalar of that value."""


def as_tensor(operand: Operand) -> Tensor:
    """The operand; a float as the constant that stands for it."""
    if isinstance(operand, Tensor):
        return operand
    value = lifted(operand)
    if value.kind != "float":
        raise RuleError(f"{operand!r} is no operand: expected a tensor or a float, as in 1.0")
    return _constant("value_float", value)


def numbers(values: Sequence[float]) -> Tensor:
    """A stored vector of these numbers."""
    return _constant("value_floats", lifted(list(values)))


def _constant(attribute: str, value: Value) -> Tensor:
    return Tensor(Apply("Constant", ((attribute, pattern.freeze(value.json)),), ()))
