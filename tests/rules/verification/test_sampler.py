"""Instances of a rule are varied, and false rules meet one that refutes them."""

from dataclasses import replace
from random import Random

import pytest

from rlflow.rules.rule import rule_from_json
from rlflow.rules.verification import sampler
from rlflow.rules.verification.refutation import Refutation
from rlflow.rules.verification.verify import (
    VerificationConfig,
    verify,
)

CONFIG = VerificationConfig()


@pytest.mark.parametrize("seed", range(8))
def test_what_is_false_only_where_a_window_keeps_the_size_is_refuted(seed: int) -> None:
    """Anywhere else the sides are of other types, or the factor is the same all over each window."""
    window = {"kernel_shape": "?k", "pads": "?p", "strides": "?s", "count_include_pad": 1}
    kinds = {
        "?k": ["integers", 1, 3, 2],
        "?p": ["choice", [0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1], [2, 1, 2, 1]],
        "?s": ["integers", 1, 2, 2],
    }
    source, target = ["Mul", "a", ["AveragePool", window, "b"]], ["AveragePool", window, ["Mul", "a", "b"]]
    rule = rule_from_json("kept", "test", [source], [target], {"b": {"shape": ["n", "c", "h", "w"]}}, attributes=kinds)
    outcome = verify(rule, replace(CONFIG, seed=seed))
    assert isinstance(outcome, Refutation)
    assert outcome.instance is not None


def test_of_no_elements_nothing_is_proved() -> None:
    """A slice that reads nothing is its own negative wherever it is well typed."""
    nothing = {"axes": [-1], "starts": [2], "ends": [1], "steps": [1]}
    rule = rule_from_json("nothing", "test", [["Slice", nothing, "x"]], [["Neg", ["Slice", nothing, "x"]]])
    outcome = verify(rule, CONFIG)
    assert isinstance(outcome, Refutation)
    assert "at only 0" in outcome.reason


def test_instances_are_varied() -> None:
    """Shapes where all dimensions are equal and shapes where they differ, of low and high rank."""
    rule = rule_from_json("any", "test", [["Relu", "x"]], [["Relu", "x"]])
    random = Random(0)
    drawn = [sampler.draw(rule, random).shape("x") for _ in range(3000)]
    assert {len(s) for s in drawn} == {0, 1, 2, 3, 4}
    high = [s for s in drawn if len(s) >= 3]
    assert sum(len(set(s)) == 1 and s[0] > 1 for s in high) > 0.3 * len(high)  # 44 % are expected
    assert sum(len(set(s)) == 3 for s in high) > 0.07 * len(high)  # 10 %, off by 1 at such a number of draws
