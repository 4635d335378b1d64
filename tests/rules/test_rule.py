"""A rule's notation and identity."""

import json
from typing import Any

import pytest

from rlflow.errors import RuleError
from rlflow.rules.library import Library
from rlflow.rules.pattern import Apply, parse, rebuilt, show, substitute, subterms, to_json, variables
from rlflow.rules.rule import canonical, rule_from_json, with_short_names

LINEAR = {"x": {"shape": ["...b", "m", "k"]}, "w": {"shape": ["k", "n"], "constant": True}}


@pytest.mark.parametrize(
    "written",
    [
        "x",
        ["Add", "x", "y"],
        ["Transpose", {"perm": "?p"}, ["Relu", "x"]],
        ["@", 1, ["Split", {"axis": -1, "split": ["list", ["dim", "w", 0], 2]}, "x"]],
        ["LayerNormalization", {"epsilon": ["value", "e"]}, "x", "g"],
    ],
)
def test_notation_round_trip(written: Any) -> None:
    assert to_json(parse(written)) == written
    assert parse(json.loads(json.dumps(to_json(parse(written))))) == parse(written)


@pytest.mark.parametrize(
    ("written", "fault"),
    [([], "no term"), (3, "no term"), (["Frobnicate", "x"], "Frobnicate"), (["@", 1, "x"], "only an operator")],
)
def test_faulty_notation_is_named(written: Any, fault: str) -> None:
    with pytest.raises(RuleError, match=fault):
        parse(written)


def test_every_rule_of_the_library_survives_its_notation(library: Library) -> None:
    for rule in library.rules:
        for term in (*rule.source, *rule.target):
            assert parse(json.loads(json.dumps(to_json(term)))) == term


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


def test_a_number_shows_as_itself() -> None:
    assert show(parse(["Mul", "x", ["Sqrt", ["Constant", {"value_float": 2.0}]]])) == "Mul(x, Sqrt(2.0))"
    assert show(parse(["Add", "x", ["Constant", {"value_float": "?e"}]])) == "Add(x, e)"


def test_rebuilding_and_substituting() -> None:
    term = parse(["Add", ["Relu", "x"], "x"])
    assert rebuilt(term, lambda t: t) == term
    assert show(substitute(term, {"x": parse(["Neg", "y"])})) == "Add(Relu(Neg(y)), Neg(y))"
    assert [show(t) for t in subterms(term)] == ["x", "Relu(x)", "x", "Add(Relu(x), x)"]
    assert isinstance(term, Apply)
