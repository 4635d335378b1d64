"""Numbers and lists of numbers that are known where a rule matches, and conditions on them, written as Python.

`x.dim(-1) == 1` looks like a comparison and is one, but of a later time: Python's operators build the data that
`rlflow.rules.expression` evaluates at each match, here `["==", ["dim", "x", -1], 1]`. The language is closed: what is
not a method or an operator below cannot be said, and a condition that Python tries to decide at once is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rlflow.errors import RuleError
from rlflow.rules.expression import Expression

Kind = Literal["int", "ints", "float", "floats", "text"]
"""The type of an attribute's value."""

Number: TypeAlias = "int | Value"
Numbers: TypeAlias = "Sequence[Number] | Value"


@dataclass(frozen=True, eq=False)
class Value:
    """A number or a list of numbers: `json` says how it is computed, `kind` what it is."""

    json: Expression
    kind: Kind

    def __getitem__(self, index: Number) -> Value:
        """The element of a list at this place, counted from the end where it is negative."""
        return Value(["get", _of_kind(self, "ints").json, _of_kind(lifted(index), "int").json], "int")

    @property
    def length(self) -> Value:
        """The number of elements of a list."""
        return Value(["length", _of_kind(self, "ints").json], "int")

    def __add__(self, other: Number) -> Value:
        return _joined_call("+", self, other)

    def __radd__(self, other: Number) -> Value:
        return _joined_call("+", other, self)

    def __mul__(self, other: Number) -> Value:
        return _joined_call("*", self, other)

    def __rmul__(self, other: Number) -> Value:
        return _joined_call("*", other, self)

    def __neg__(self) -> Value:
        return -1 * self

    def __sub__(self, other: Number) -> Value:
        return self + -other

    def __rsub__(self, other: Number) -> Value:
        return other + -self

    def __truediv__(self, other: Number) -> Value:
        """The quotient; where the numbers do not divide without rest, nothing that needs it is proved."""
        return Value(["/", _of_kind(self, "int").json, _of_kind(lifted(other), "int").json], "int")

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition(["==", self.json, to_json(other)])

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition(["!=", self.json, to_json(other)])

    def __lt__(self, other: Number) -> Condition:
        return _compared("<", self, other)

    def __le__(self, other: Number) -> Condition:
        return _compared("<=", self, other)

    def __gt__(self, other: Number) -> Condition:
        return _compared("<", other, self)

    def __ge__(self, other: Number) -> Condition:
        return _compared("<=", other, self)

    def is_in(self, choices: Sequence[object] | Value) -> Condition:
        """One of these values, or of the elements of this list."""
        return Condition(["in", self.json, to_json(choices)])

    def contains(self, number: Number) -> Condition:
        """The number is an element of this list."""
        return Condition(["in", to_json(number), _of_kind(self, "ints").json])

    def then(self, other: Value) -> Value:
        """The permutation of transposing by this one and then by the other."""
        return Value(["compose", self.json, other.json], "ints")

    def inverse(self) -> Value:
        """The permutation that undoes this one."""
        return Value(["inverse", self.json], "ints")

    def is_identity(self) -> Condition:
        """The permutation leaves every axis where it is."""
        return Condition(["is_identity", self.json])

    def swaps_last_two(self) -> Condition:
        """The permutation exchanges the last two axes and leaves all others."""
        return Condition(["swaps_last_two", self.json])

    def permuted(self, permutation: Value) -> Value:
        """The shape of a tensor of this shape, transposed."""
        return Value(["compose", self.json, permutation.json], "ints")

    def is_static(self) -> Condition:
        """No dimension of the shape is dynamic."""
        return Condition(["static", self.json])

    def keeps_order(self, permutation: Value) -> Condition:
        """A transpose of a tensor of this shape moves only axes of length one past each other."""
        return Condition(["keeps_order", self.json, permutation.json])

    def __bool__(self) -> bool:
        raise RuleError("a value of a rule is known only where the rule matches: Python cannot test it here")

    def __iter__(self) -> Any:
        raise RuleError("the length of a rule's list is known only where the rule matches: take elements by index")

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Condition:
    """A statement about values that holds or does not, where a rule matches."""

    json: Expression

    def __and__(self, other: Condition) -> Condition:
        return Condition(["and", self.json, other.json])

    def __or__(self, other: Condition) -> Condition:
        return Condition(["or", self.json, other.json])

    def __invert__(self) -> Condition:
        return Condition(["not", self.json])

    def __bool__(self) -> bool:
        raise RuleError(
            "a condition is decided only where the rule matches: combine conditions by &, | and ~, and pass each "
            "one to `where`"
        )


def ints(*numbers: Number) -> Value:
    """A list of whole numbers; where one of them is a dynamic dimension, nothing that needs the list is proved."""
    return Value(["list", *(_of_kind(lifted(n), "int").json for n in numbers)], "ints")


def join(*lists: Numbers) -> Value:
    """Lists of whole numbers end to end."""
    return Value(["join", *(_of_kind(lifted(part), "ints").json for part in lists)], "ints")


def total(*numbers: Number) -> Value:
    """The sum of any number of numbers, none included."""
    return Value(["+", *(_of_kind(lifted(n), "int").json for n in numbers)], "int")


def is_even(number: Value) -> Condition:
    """The number divides by two without rest."""
    return 2 * (number / 2) == number


def reads_some(size: Value, begin: Value, end: Value, step: Value) -> Condition:
    """A slice from begin to end by step has elements, wherever an axis of this size has."""
    return Condition(["reads_some", *(_of_kind(v, "int").json for v in (size, begin, end, step))])


def lifted(value: object) -> Value:
    """A literal as a value; `RuleError` for what no attribute can be."""
    kind = _kind(value)
    return value if isinstance(value, Value) else Value(to_json(value), kind)


def to_json(value: object) -> Expression:
    """The notation of a value, a literal, or a sequence of these."""
    if isinstance(value, Value):
        return value.json
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    _kind(value)
    return value


def _kind(value: object) -> Kind:
    match value:
        case Value():
            return value.kind
        case bool():
            raise RuleError(f"{value} is no attribute's value: ONNX writes a flag as 0 or 1")
        case int():
            return "int"
        case float():
            return "float"
        case str():
            return "text"
        case list() | tuple():
            inner = {_kind(v) for v in value}
            if inner <= {"int"}:
                return "ints"
            if inner == {"float"}:
                return "floats"
    raise RuleError(f"{value!r} is no attribute's value: expected a number, a text, or a list of numbers of one type")


def _of_kind(value: Value, kind: Kind) -> Value:
    if value.kind != kind:
        raise RuleError(f"{value.json!r} is of the type {value.kind!r} where {kind!r} is expected")
    return value


def _compared(relation: str, a: Number, b: Number) -> Condition:
    return Condition([relation, *(_of_kind(lifted(n), "int").json for n in (a, b))])


def _joined_call(function: str, a: Number, b: Number) -> Value:
    """a + b + c is one sum of three, as a * b * c is one product."""
    first, second = (_of_kind(lifted(n), "int").json for n in (a, b))
    before = first[1:] if isinstance(first, list) and first[0] == function else [first]
    return Value([function, *before, second], "int")
