"""Terms: their notation, their parts, and how they are shown."""

import json
from typing import Any

import pytest

from rlflow.errors import RuleError
from rlflow.rules.library import Library
from rlflow.rules.pattern import Apply, parse, rebuilt, show, substitute, subterms, to_json


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


def test_a_number_shows_as_itself() -> None:
    assert show(parse(["Mul", "x", ["Sqrt", ["Constant", {"value_float": 2.0}]]])) == "Mul(x, Sqrt(2.0))"
    assert show(parse(["Add", "x", ["Constant", {"value_float": "?e"}]])) == "Add(x, e)"


def test_rebuilding_and_substituting() -> None:
    term = parse(["Add", ["Relu", "x"], "x"])
    assert rebuilt(term, lambda t: t) == term
    assert show(substitute(term, {"x": parse(["Neg", "y"])})) == "Add(Relu(Neg(y)), Neg(y))"
    assert [show(t) for t in subterms(term)] == ["x", "Relu(x)", "x", "Add(Relu(x), x)"]
    assert isinstance(term, Apply)
