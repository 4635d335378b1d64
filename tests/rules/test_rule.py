"""A rule's notation and identity."""

from typing import Any

import pytest

from rlflow.errors import RuleError
from rlflow.rules.library import Library
from rlflow.rules.pattern import variables
from rlflow.rules.rule import canonical, rule_from_json, with_short_names

LINEAR = {"x": {"shape": ["...b", "m", "k"]}, "w": {"shape": ["k", "n"], "constant": True}}


def test_the_id_is_of_the_content_not_of_names() -> None:
    one = rule_from_json("a", "f", [["MatMul", "x", "w"]], [["MatMul", "x", "w"]], LINEAR)
    renamed = {"left": {"shape": ["...z", "p", "q"]}, "right": {"shape": ["q", "r"], "constant": True}}
    other = rule_from_json("b", "f", [["MatMul", "left", "right"]], [["MatMul", "left", "right"]], renamed)
    assert one.id == other.id
    variants = [
        rule_from_json("a", "f", [["MatMul", "x", "w"]], [["MatMul", "x", "w"]], LINEAR | {"w": {"shape": ["k", "n"]}}),
        rule_from_json(
            "a", "f", [["MatMul", "x", "w"]], [["MatMul", "x", "w"]], LINEAR, where=[["==", ["rank", "x"], 2]]
        ),
        rule_from_json("a", "f", [["MatMul", "x", "w"]], [["MatMul", "x", "w"]], LINEAR, opset=17),
        rule_from_json("a", "f", [["MatMul", "x", "w"]], [["MatMul", "x", "w"]], LINEAR | {"x": {"shape": ["m", "k"]}}),
    ]
    assert len({one.id, *(v.id for v in variants)}) == 5


def test_ids_are_unique(library: Library) -> None:
    assert len({r.id for r in library.rules}) == len(library.rules)


@pytest.mark.parametrize(
    ("source", "target", "fault"),
    [
        (["x"], [["Relu", "x"]], "bare variable"),
        ([["Relu", "x"]], [["Add", "x", "y"]], "does not bind"),
        ([["Relu", "x"]], [], "outputs"),
    ],
)
def test_rules_that_make_no_sense_are_refused(source: Any, target: Any, fault: str) -> None:
    with pytest.raises(RuleError, match=fault):
        rule_from_json("nonsense", "f", source, target)


def test_short_names_change_names_alone(library: Library) -> None:
    rule = library.get("scale-into-weight")
    short = with_short_names(rule)
    assert canonical(short) == canonical(rule)
    assert variables(*short.source) == ("a", "b", "c")
    assert short.name == short.equation()
