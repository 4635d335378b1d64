"""Telling whether an equality is new."""

from typing import Any

import pytest

from rlflow.ir.tensor_type import TensorType
from rlflow.rules.pattern import Term, parse
from rlflow.rules.rule import rule_from_json
from rlflow.rules.verification.verify import VerificationConfig, certified
from rlflow.synthesis.prune import KnownRules, is_commutativity, tree_size, type_of, up_to_names

TYPES = {
    **{name: TensorType("float32", (2, 3)) for name in "abc"},
    "w": TensorType("float32", (3, 4)),
    "v": TensorType("float32", (3, 4)),
    "s": TensorType("float32", ()),
}


def pair(left: Any, right: Any) -> tuple[Term, Term]:
    return parse(left), parse(right)


def test_pairs_that_differ_in_names_alone_are_one() -> None:
    one = pair(["Add", "a", ["Add", "b", "c"]], ["Add", ["Add", "a", "b"], "c"])
    other = pair(["Add", "c", ["Add", "a", "b"]], ["Add", ["Add", "c", "a"], "b"])
    assert one != other
    assert up_to_names(*one, TYPES) == up_to_names(*other, TYPES)
    assert up_to_names(*one, TYPES) != up_to_names(other[0], one[1], TYPES)


def test_pairs_of_other_types_are_others() -> None:
    relu = [pair(["Relu", ["Relu", name]], ["Relu", name]) for name in ("a", "w", "s")]
    assert len({up_to_names(*p, TYPES) for p in relu}) == 3


def test_commutativity_is_recognised() -> None:
    assert is_commutativity(*pair(["Add", "a", "b"], ["Add", "b", "a"]))
    assert not is_commutativity(*pair(["Add", "a", "b"], ["Add", "a", "b"]))
    assert not is_commutativity(*pair(["Add", ["Relu", "a"], "b"], ["Add", "b", ["Relu", "a"]]))


def test_sizes_and_types() -> None:
    term = parse(["MatMul", ["Add", "a", "a"], "w"])
    assert tree_size(term, parse("a")) == 2
    assert type_of(term, TYPES) == TensorType("float32", (2, 4))


@pytest.fixture(scope="module")
def known() -> KnownRules:
    known = KnownRules()
    matrix = {"shape": ["m", "n"]}
    for rule in (
        rule_from_json("idempotent", "t", [["Relu", ["Relu", "x"]]], [["Relu", "x"]]),
        rule_from_json("right", "t", [["Add", ["Add", "x", "y"], "z"]], [["Add", "x", ["Add", "y", "z"]]]),
        rule_from_json(
            "scale",
            "t",
            [["MatMul", ["Mul", "x", "s"], "w"]],
            [["Mul", ["MatMul", "x", "w"], "s"]],
            {"x": matrix, "w": {"shape": ["n", "k"]}},
            where=[["==", ["elements", "s"], 1]],
        ),
    ):
        known.add(certified(rule, VerificationConfig()))
    return known


def test_instances_are_explained(known: KnownRules) -> None:
    assert known.explain(*pair(["Relu", ["Relu", ["Add", "a", "b"]]], ["Relu", ["Add", "a", "b"]]), TYPES)
    inside = pair(["Mul", "c", ["Relu", ["Relu", "a"]]], ["Mul", ["Relu", "a"], "c"])
    assert known.explain(*inside, TYPES)
    scaled = pair(["MatMul", ["Mul", "a", "s"], "w"], ["Mul", "s", ["MatMul", "a", "w"]])
    assert known.explain(*scaled, TYPES)


def test_a_condition_that_fails_explains_nothing(known: KnownRules) -> None:
    elementwise = pair(["MatMul", ["Mul", "a", "b"], "w"], ["Mul", ["MatMul", "a", "w"], "b"])
    assert not known.explain(*elementwise, TYPES)


def test_what_is_new_is_not_explained(known: KnownRules) -> None:
    assert not known.explain(*pair(["Relu", ["Mul", "a", "a"]], ["Mul", "a", "a"]), TYPES)


def test_a_rule_leads_to_each_place(known: KnownRules) -> None:
    term = parse(["Add", ["Relu", ["Relu", "a"]], ["Relu", ["Relu", "b"]]])
    for place in (["Add", ["Relu", "a"], ["Relu", ["Relu", "b"]]], ["Add", ["Relu", ["Relu", "a"]], ["Relu", "b"]]):
        assert known.lead(term, parse(place), TYPES)
    assert not known.lead(term, parse(["Add", ["Relu", "a"], ["Relu", "b"]]), TYPES)
