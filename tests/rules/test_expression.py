"""The closed language: what it computes, what it cannot prove, and that it refuses the rest."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlflow.errors import RuleError
from rlflow.ir.tensor_type import TensorType
from rlflow.rules.expression import Scope, Unproven, bounded_in, describe, evaluate, holds

SCOPE = Scope(
    types={
        "x": TensorType("float32", (2, 3)),
        "n": TensorType("float32", ("batch", 3)),
        "u": TensorType("float32", None),
        "i": TensorType("int64", ()),
    },
    attributes={"?p": (1, 0, 2), "?q": (2, 0, 1)},
    literals={"e": 0.5},
    bounded=("x",),
)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (["dim", "x", -1], 3),
        (["dim", "n", 0], "batch"),
        (["shape", "x"], (2, 3)),
        (["rank", "x"], 2),
        (["elements", "x"], 6),
        (["elements", "n", 1], 3),
        (["bounded", "x"], True),
        (["bounded", "n"], False),
        (["float", "i"], False),
        (["value", "e"], 0.5),
        ("?p", (1, 0, 2)),
        (["compose", "?p", "?q"], (2, 1, 0)),
        (["inverse", "?q"], (1, 2, 0)),
        (["is_identity", ["compose", "?q", ["inverse", "?q"]]], True),
        (["swaps_last_two", [0, 2, 1]], True),
        (["reads_some", 3, 1, 3, 1], True),
        (["reads_some", 1, 1, 3, 1], False),
        (["reads_some", 3, -1, -5, -1], True),
        (["reads_some", ["dim", "n", 0], 0, 2, 1], True),
        (["reads_some", ["dim", "n", 0], 1, 2, 1], False),
        (["reads_some", 0, 0, 2, 1], True),
        (["keeps_order", [1, 5, 1, 4], [1, 0, 3, 2]], True),
        (["keeps_order", [2, 5, 1], [1, 0, 2]], False),
        (["swaps_last_two", "?p"], False),
        (["list", ["*", ["dim", "x", 0], 2], 5], (4, 5)),
        (["/", ["elements", "x"], 2], 3),
        (["join", ["shape", "x"], [7]], (2, 3, 7)),
        (["and", ["<", 1, 2], ["not", ["==", 1, 2]]], True),
        (["in", 0, [0, -1]], True),
        (["static", ["shape", "n"]], False),
    ],
)
def test_values(expression: Any, value: Any) -> None:
    assert evaluate(expression, SCOPE) == value


@pytest.mark.parametrize(
    "expression",
    [
        ["dim", "x", 2],
        ["dim", "u", 0],
        ["elements", "n"],
        ["shape", "u"],
        ["*", ["dim", "n", 0], 2],
        ["/", 3, 2],
        ["/", 3, 0],
    ],
)
def test_what_types_do_not_tell_is_unproven_and_does_not_hold(expression: Any) -> None:
    with pytest.raises(Unproven):
        evaluate(expression, SCOPE)
    assert not holds(["==", expression, expression], SCOPE)


def test_there_is_no_way_out_of_the_language() -> None:
    for escape in (["__import__", "os"], ["eval", "1"], ["exec", "x"]):
        with pytest.raises(RuleError, match="unknown function"):
            evaluate(escape, SCOPE)


def test_description() -> None:
    assert describe(["and", ["==", ["dim", "w", -1], 1], ["swaps_last_two", "?p"]]) == (
        "dim(w, -1) == 1 and swaps_last_two(p)"
    )


@given(st.permutations(range(5)), st.permutations(range(5)))
def test_composition_is_transposing_twice(p: list[int], q: list[int]) -> None:
    scope = Scope({}, {"?p": tuple(p), "?q": tuple(q)})
    value = np.arange(32).reshape((2,) * 5)
    composed = evaluate(["compose", "?p", "?q"], scope)
    assert (value.transpose(p).transpose(q) == value.transpose(composed)).all()
    assert evaluate(["compose", "?p", ["inverse", "?p"]], scope) == tuple(range(5))


def test_sums_within_products_and_long_lists_are_told_from_others() -> None:
    assert describe(["/", ["+", ["dim", "x", 0], 1], 2]) == "(dim(x, 0) + 1) / 2"
    assert describe(["+", ["/", ["dim", "x", 0], 2], 1]) == "dim(x, 0) / 2 + 1"
    assert describe([1.0] * 16).count("1.0") == 16
    assert describe([1.0] * 17) == "[17 numbers]"


def test_what_must_be_bounded_is_found_at_any_depth() -> None:
    condition = ["or", ["bounded", "x"], ["and", ["==", ["dim", "y", 0], 1], ["bounded", "z"]]]
    assert bounded_in([condition, ["==", ["rank", "u"], 2]]) == {"x", "z"}
    assert bounded_in([]) == frozenset()
