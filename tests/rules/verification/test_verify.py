"""The verifier refuses what is false, however it is false, and says at what instance."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from support.known_rules import SCALE

from rlflow.errors import RuleError
from rlflow.rules.certificate import Certificate
from rlflow.rules.declared.catalogue import declared_rules, false_controls
from rlflow.rules.library import Library
from rlflow.rules.rule import Rule, rule_from_json
from rlflow.rules.verification import sampler
from rlflow.rules.verification.refutation import Refutation
from rlflow.rules.verification.sampler import Sampler
from rlflow.rules.verification.verify import (
    VerificationConfig,
    certified,
    check_false_controls,
    differs_in_floats,
    exact_difference,
    float_errors,
    is_rounding,
    leaves_domain,
    loses_precision,
    verify,
)

CONFIG = VerificationConfig()
SQUARE = {"a": {"shape": ["n", "n"]}, "b": {"shape": ["n", "n"]}}


@pytest.mark.parametrize("control", false_controls(), ids=lambda r: r.name)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))])
def test_false_controls_are_refuted_by_a_counter_example(control: Rule, seed: int) -> None:
    outcome = verify(control, replace(CONFIG, seed=seed))
    assert isinstance(outcome, Refutation)
    assert outcome.instance is not None
    if outcome.remedies:  # at masks or at no elements (test_assumptions.py)
        return
    case, rng = Sampler(control).sides(outcome.instance), np.random.default_rng(seed)
    assert (
        exact_difference(case, rng, CONFIG)
        or max(float_errors([case], rng)) > 1e-3
        or leaves_domain(case, rng)
        or loses_precision(case, rng)
    )


def test_only_magnitudes_tell_a_detour_by_a_difference() -> None:
    """a + (b - a) is b in every field, and nearly so in floats of one magnitude: the other checks see nothing."""
    control = next(c for c in false_controls() if c.name == "detour-by-a-difference")
    outcome = verify(control, CONFIG)
    assert isinstance(outcome, Refutation)
    assert outcome.reason.startswith("the target is far less accurate")
    case, rng = Sampler(control).sides(outcome.instance), np.random.default_rng(0)
    assert not exact_difference(case, rng, CONFIG)
    assert not leaves_domain(case, rng)


def test_what_the_source_loses_may_be_lost() -> None:
    """The same equality from the detour to the quotient: the source is the worse side."""
    control = next(c for c in false_controls() if c.name == "detour-by-a-difference")
    back = rule_from_json("back", "test", [["Add", "a", ["Sub", "b", "a"]]], [["Div", ["Mul", "a", "b"], "a"]], SQUARE)
    instance = verify(control, CONFIG).instance
    assert not loses_precision(Sampler(back).sides(instance), np.random.default_rng(0))


def test_a_control_that_passes_is_an_alarm() -> None:
    with pytest.raises(RuleError, match="which is false"):
        check_false_controls([declared_rules()[0]], CONFIG)


def test_domain_errors_are_seen() -> None:
    """sqrt(x) * sqrt(x) = x fails for negative x, and in the exact field as well, where sqrt is only a name."""
    rule = rule_from_json("sqrt", "test", [["Mul", ["Sqrt", "x"], ["Sqrt", "x"]]], ["x"], {"x": {"shape": ["n"]}})
    assert isinstance(verify(rule, CONFIG), Refutation)


def test_division_by_zero_is_not_cancelled() -> None:
    """relu(x) / relu(x) = 1 where it is defined."""
    rule = rule_from_json("cancel", "test", [["Div", ["Relu", "x"], ["Relu", "x"]]], [["Div", "x", "x"]])
    outcome = verify(rule, CONFIG)
    assert isinstance(outcome, Refutation)
    assert "undefined" in outcome.reason


def test_a_target_that_is_never_typed_is_refuted() -> None:
    rule = rule_from_json(
        "untyped", "test", [["Relu", "x"]], [["Transpose", {"perm": [1, 0]}, "x"]], {"x": {"shape": [2, 3]}}
    )
    outcome = verify(rule, CONFIG)
    assert isinstance(outcome, Refutation)
    assert "well typed, and has elements, at only 0" in outcome.reason


def test_a_certified_rule_is_not_refuted_by_less_lucky_draws(library: Library) -> None:
    """A fifth of this rule's instances have a well-typed target: at seed 0 enough to certify it, at seed 2 too few."""
    rule = library.get("join-bedfbb349c1e")
    unlucky = replace(CONFIG, seed=2)
    assert isinstance(verify(rule, unlucky), Certificate)
    outcome = verify(replace(rule, certificate=None), unlucky)
    assert isinstance(outcome, Refutation)
    assert "well typed, and has elements, at only 1" in outcome.reason


def test_an_accident_of_floats_refutes_nothing() -> None:
    """Both sides are a c / (a c + b): near its pole, of whose neighbours some are drawn, neither is accurate."""
    source, target = ["Div", "a", ["Add", "a", ["Div", "b", "c"]]], ["Div", "c", ["Add", "c", ["Div", "b", "a"]]]
    vectors = {name: {"shape": [64]} for name in "abc"}
    rule = rule_from_json("pole", "test", [source], [target], vectors)
    case, rng = Sampler(rule).sides(sampler.draw(rule, Random(0))), np.random.default_rng(0)
    assert case is not None
    errors = float_errors([case] * 1600, rng)
    assert 0 < sum(not is_rounding(error) for error in errors) < 100
    assert not differs_in_floats(case, rng)
    wrong = rule_from_json("wrong", "test", [source], [["Neg", target]], vectors)
    assert differs_in_floats(Sampler(wrong).sides(case.instance), rng)


def test_a_refuted_rule_says_where(library: object) -> None:
    rule = rule_from_json(
        "wrong", "test", [["MatMul", "a", "b"]], [["MatMul", "b", "a"]], {n: {"shape": ["n", "n"]} for n in "ab"}
    )
    with pytest.raises(RuleError, match=r"rule test-[0-9a-f]{12} \(wrong\) is refuted.*'a': \[[234], [234]\]"):
        certified(rule, CONFIG)


def test_without_its_condition_a_rule_is_refuted() -> None:
    assert isinstance(verify(SCALE, CONFIG), Refutation)
    conditional = replace(SCALE, where=(["==", ["elements", "s"], 1],))
    outcome = verify(conditional, CONFIG)
    assert isinstance(outcome, Certificate)
    assert outcome.refuted_without_condition > 0
