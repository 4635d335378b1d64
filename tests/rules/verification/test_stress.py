"""Many instances: a true rule survives them, and one that is false at few of them does not."""

import pytest

from rlflow.errors import RuleError
from rlflow.rules.declared.catalogue import false_controls
from rlflow.rules.rule import rule_from_json
from rlflow.rules.verification.refutation import Refutation
from rlflow.rules.verification.stress import StressReport, stress

PRODUCT = {"a": {"shape": ["m", "k"]}, "b": {"shape": ["k", "n"]}}


def test_a_true_rule_survives_all_of_them() -> None:
    """More than one session's worth, of which none is left out; the products of floats differ by roundings."""
    rule = rule_from_json(
        "sum", "test", [["MatMul", "a", ["Add", "b", "b"]]], [["MatMul", ["Add", "a", "a"], "b"]], PRODUCT
    )
    found = stress(rule, instances=150, seed=0)
    assert isinstance(found, StressReport)
    assert found.instances == 150
    assert found == stress(rule, instances=150, seed=0)


def test_a_rule_that_is_rarely_false_is_found_out() -> None:
    """Wrong where two sizes are equal and not 1 alone: elsewhere its target is not well typed."""
    rule = rule_from_json(
        "rare", "test", [["Mul", "a", "b"]], [["Mul", "a", ["Transpose", {"perm": [1, 0]}, "b"]]], PRODUCT
    )
    found = stress(rule, instances=150, seed=0)
    assert isinstance(found, Refutation)
    assert found.instance is not None
    assert len(set(found.instance.shape("b"))) == 1


@pytest.mark.slow
def test_numbers_that_cancel_refute_nothing() -> None:
    """b - (b - a) is a, but in floats it is far from a small a: the source is at fault, and only for few numbers:
    one draw in some thousands."""
    rule = rule_from_json(
        "cancel", "test", [["Sub", "b", ["Sub", "b", "a"]]], ["a"], {name: {"shape": [1]} for name in "ab"}
    )
    found = stress(rule, instances=10_000, seed=2)
    assert isinstance(found, StressReport)
    assert 0 < found.cancelled < 40


@pytest.mark.parametrize("control", false_controls()[:4], ids=lambda control: control.name)
def test_false_controls_do_not_survive(control) -> None:
    assert isinstance(stress(control, instances=50, seed=0), Refutation)


def test_what_is_never_well_typed_is_told() -> None:
    rule = rule_from_json("untyped", "test", [["Relu", "a"]], [["MatMul", "a", "a"]], {"a": {"shape": []}})
    with pytest.raises(RuleError, match="at only 0 drawn instances"):
        stress(rule, instances=10, seed=0)
