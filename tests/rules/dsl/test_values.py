"""Conditions and computed attributes: what Python builds is the closed language, and means what Python says."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlflow.errors import RuleError
from rlflow.ir.tensor_type import TensorType
from rlflow.rules.dsl import Condition, Value, attribute, ints, is_even, join, reads_some, tensor, total
from rlflow.rules.expression import FUNCTIONS, VARIABLE_FUNCTIONS, Scope, evaluate, holds

X, P, A = tensor("x"), attribute("p", "ints"), attribute("a", "int")

EVERYTHING: list[tuple[Value | Condition, Any]] = [
    (X.dim(-1), ["dim", "x", -1]),
    (X.shape, ["shape", "x"]),
    (X.rank, ["rank", "x"]),
    (X.elements, ["elements", "x"]),
    (X.is_float, ["float", "x"]),
    (X.is_bounded, ["bounded", "x"]),
    (X.is_unsigned, ["unsigned", "x"]),
    (X.elements_from(1) == 3, ["==", ["elements", "x", 1], 3]),
    (X.last_two_swapped(), ["last_two_swapped", ["rank", "x"]]),
    (X.number, ["value", "x"]),
    (P[0], ["get", "?p", 0]),
    (P[A], ["get", "?p", "?a"]),
    (P.length, ["length", "?p"]),
    (A + 1 + A, ["+", "?a", 1, "?a"]),
    (1 - A, ["+", 1, ["*", -1, "?a"]]),
    (A - 1, ["+", "?a", -1]),
    (2 * A, ["*", 2, "?a"]),
    (A / 2, ["/", "?a", 2]),
    (total(0), ["+", 0]),
    (ints(0, A), ["list", 0, "?a"]),
    (join(P, [1]), ["join", "?p", [1]]),
    (X.dim(0) == 1, ["==", ["dim", "x", 0], 1]),
    (P != [1, 1], ["!=", "?p", [1, 1]]),
    (A < 2, ["<", "?a", 2]),
    (A > 2, ["<", 2, "?a"]),
    (A <= 2, ["<=", "?a", 2]),
    (A >= 2, ["<=", 2, "?a"]),
    (A.is_in([0, -1, X.dim(0)]), ["in", "?a", [0, -1, ["dim", "x", 0]]]),
    (P.contains(0), ["in", 0, "?p"]),
    (~P.contains(0), ["not", ["in", 0, "?p"]]),
    ((A < 2) & (A > 0), ["and", ["<", "?a", 2], ["<", 0, "?a"]]),
    ((A < 2) | (A > 0), ["or", ["<", "?a", 2], ["<", 0, "?a"]]),
    (P.then(P), ["compose", "?p", "?p"]),
    (X.shape.permuted(P), ["compose", ["shape", "x"], "?p"]),
    (P.inverse(), ["inverse", "?p"]),
    (P.is_identity(), ["is_identity", "?p"]),
    (P.swaps_last_two(), ["swaps_last_two", "?p"]),
    (X.shape.is_static(), ["static", ["shape", "x"]]),
    (X.shape.keeps_order(P), ["keeps_order", ["shape", "x"], "?p"]),
    (is_even(A), ["==", ["*", 2, ["/", "?a", 2]], "?a"]),
    (reads_some(X.dim(0), P[0], P[1], P[2]), ["reads_some", ["dim", "x", 0], *(["get", "?p", i] for i in range(3))]),
]


@pytest.mark.parametrize(("written", "json"), EVERYTHING, ids=lambda e: json.dumps(e) if isinstance(e, list) else "")
def test_python_builds_the_notation(written: Value | Condition, json: Any) -> None:
    assert written.json == json


def _heads(expression: Any) -> set[str]:
    if not isinstance(expression, list) or not expression:
        return set()
    own = {expression[0]} if isinstance(expression[0], str) and not expression[0].startswith("?") else set()
    return own.union(*map(_heads, expression))


def test_the_language_is_closed_and_all_of_it_can_be_written() -> None:
    """Not vacuous in either direction: nothing is built that the evaluator lacks, and nothing lacks a spelling."""
    heads = set().union(*(_heads(json) for _, json in EVERYTHING)) - {"x"}
    assert heads == {*FUNCTIONS, *VARIABLE_FUNCTIONS, "value", "bounded"}


NUMBERS = st.integers(-9, 9)
OPERATORS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: b - a,
    lambda a, b: a * b,
    lambda a, b: 3 * a - b + 2,
    lambda a, b: (a + b) * (a - b),
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: a == b,
    lambda a, b: a != b,
]


@given(a=NUMBERS, b=NUMBERS, choice=st.integers(0, len(OPERATORS) - 1))
def test_operators_mean_what_they_mean_of_numbers(a: int, b: int, choice: int) -> None:
    """The same Python function of two numbers, and of two attributes that are bound to them."""
    apply = OPERATORS[choice]
    built = apply(attribute("a", "int"), attribute("b", "int"))
    assert evaluate(built.json, Scope({}, {"?a": a, "?b": b})) == apply(a, b)


@given(permutation=st.permutations(range(4)), sizes=st.tuples(*[st.integers(1, 5)] * 4))
def test_permutations_mean_what_they_say(permutation: list[int], sizes: tuple[int, ...]) -> None:
    scope = Scope({"x": TensorType("float32", sizes)}, {"?p": tuple(permutation)})
    assert evaluate(P.then(P.inverse()).json, scope) == (0, 1, 2, 3)
    assert evaluate(X.shape.permuted(P).json, scope) == tuple(sizes[i] for i in permutation)
    assert holds(P.is_identity().json, scope) == (permutation == [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        (lambda: bool(A == 1), "decided only where the rule matches"),
        (lambda: 0 < A < 2, "combine conditions by &"),
        (lambda: bool(A), "known only where the rule matches"),
        (lambda: list(P), "take elements by index"),
        (lambda: P + 1, "of the type 'ints' where 'int' is expected"),
        (lambda: A.length, "of the type 'int' where 'ints' is expected"),
        (lambda: A == object(), "is no attribute's value"),
        (lambda: A == True, "writes a flag as 0 or 1"),  # noqa: E712
        (lambda: ints(1.5), "of the type 'float'"),
    ],
)
def test_what_cannot_be_said_is_refused(mistake: Callable[[], object], told: str) -> None:
    with pytest.raises(RuleError, match=told):
        mistake()
