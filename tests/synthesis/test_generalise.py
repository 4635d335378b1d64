"""An equality is widened as far as it is true and no further; conditions are mined."""

from dataclasses import replace
from random import Random

import numpy as np
from support.known_rules import SCALE

from rlflow.rules.certificate import Certificate
from rlflow.rules.expression import holds
from rlflow.rules.rule import rule_from_json
from rlflow.rules.verification import sampler
from rlflow.rules.verification.verify import (
    VerificationConfig,
    verify,
)
from rlflow.synthesis.generalise import Certifier, generalised, mine

CONFIG = VerificationConfig()


def test_a_condition_is_mined() -> None:
    where = mine(SCALE, np.random.default_rng(0), CONFIG)
    assert where
    assert isinstance(verify(replace(SCALE, where=where), CONFIG), Certificate)
    scalar = next(i for i in (sampler.draw(SCALE, Random(k)) for k in range(200)) if i.types["s"].elements == 1)
    assert all(holds(condition, scalar.scope) for condition in where)


def test_what_no_condition_can_save_stays_refuted() -> None:
    rule = rule_from_json("exp", "test", [["Exp", ["Add", "a", "b"]]], [["Add", ["Exp", "a"], ["Exp", "b"]]])
    assert mine(rule, np.random.default_rng(0), CONFIG) is None
    assert Certifier(CONFIG).first([rule]) is None


def test_an_equality_is_widened_as_far_as_it_is_true() -> None:
    matrix = {"shape": ["m", "k"]}
    seen = rule_from_json(
        "seen",
        "test",
        [["Add", "a", ["Add", "a", "b"]]],
        [["Add", "b", ["Add", "a", "a"]]],
        {"a": matrix, "b": matrix},
    )
    wide = generalised(seen, CONFIG, {"m": 2, "k": 3})
    assert wide is not None
    assert wide.equation() == "Add(a, Add(b, c)) => Add(c, Add(a, b))"
    assert not wide.variables
    assert isinstance(wide.certificate, Certificate)


def test_an_equality_is_widened_no_further_than_it_is_true() -> None:
    """A vector that scales the columns of a product may have no leading dimensions: they would scale other things."""
    variables = {"x": {"shape": ["m", "k"]}, "w": {"shape": ["k", "n"]}, "q": {"shape": ["n"]}}
    seen = rule_from_json(
        "seen", "test", [["MatMul", "x", ["Mul", "w", "q"]]], [["Mul", "q", ["MatMul", "x", "w"]]], variables
    )
    wide = generalised(seen, CONFIG, {"m": 2, "k": 3, "n": 4})
    assert wide is not None
    shapes = [wide.spec(name).shape for name in "abc"]
    assert shapes == [("...a", "a1", "a2"), ("...b", "a2", "b2"), ("b2",)]


def test_a_common_part_becomes_a_variable() -> None:
    """The outer product of two columns was seen with a transpose, which has nothing to do with it."""
    transposed = ["Transpose", {"perm": [1, 0]}, "b"]
    column = {"shape": ["m", 1]}
    seen = rule_from_json(
        "seen", "test", [["Mul", "a", transposed]], [["MatMul", "a", transposed]], {"a": column, "b": column}
    )
    wide = generalised(seen, CONFIG, {"m": 2})
    assert wide is not None
    assert wide.equation() == "Mul(a, b) => MatMul(a, b)"
    assert [wide.spec(name).shape for name in "ab"] == [("...a", "a1", 1), ("...b", 1, "b2")]
