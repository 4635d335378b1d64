"""Which rules assume that values are finite, and which that products do not leave the range, in another order."""

from random import Random

import numpy as np
import pytest

from rlflow.rules.certificate import FINITE, MODERATE
from rlflow.rules.rule import Rule, rule_from_json
from rlflow.rules.verification.extremes import are_close, assumed, extreme_trials, unlike
from rlflow.rules.verification.sampler import Sampler
from rlflow.rules.verification.settings import computed
from rlflow.runtime.session import SETTINGS

SQUARE = {name: {"shape": ["n", "n"]} for name in "abc"}

_HALVED = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0], "dilations": [1, 1]}


def of(source: object, target: object) -> Rule:
    return rule_from_json("rule", "test", [source], [target], SQUARE)


IMAGES_POOLED = rule_from_json(
    "pooled",
    "test",
    [["Relu", ["Relu", ["MaxPool", _HALVED, "a"]]]],
    [["Relu", ["MaxPool", _HALVED, "a"]]],
    {"a": {"shape": ["n", "c", 4, 4]}},
)
"""The very same for each NaN by numpy; ONNX Runtime loses some of them where it keeps the image in blocks."""

ASSUMING = [
    (of(["Add", ["Add", "a", "b"], "c"], ["Add", "a", ["Add", "b", "c"]]), set()),
    (of(["Relu", ["Relu", "a"]], ["Relu", "a"]), set()),
    (of(["Mul", ["Mul", "a", "b"], "c"], ["Mul", "a", ["Mul", "b", "c"]]), {MODERATE}),
    (of(["Mul", "a", ["Add", "b", "c"]], ["Add", ["Mul", "a", "b"], ["Mul", "a", "c"]]), {FINITE}),
    (of(["Div", ["Mul", "a", "b"], "a"], "b"), {FINITE}),
    (IMAGES_POOLED, {FINITE}),
]


@pytest.mark.parametrize(("rule", "wanted"), ASSUMING, ids=lambda v: v.equation() if isinstance(v, Rule) else "")
@pytest.mark.parametrize("seed", range(3))
def test_what_a_rule_assumes(rule: Rule, wanted: set[str], seed: int) -> None:
    """Sums in another order overflow at the end of the range alone, and keep NaN and infinities where they are."""
    sampler, random, rng = Sampler(rule), Random(seed), np.random.default_rng(seed)
    cases = [sampler.sides(sampler.draw(random)) for _ in range(6)]
    found = {name for case in cases if case for name in assumed(case, rng)}
    assert found & {FINITE} == wanted & {FINITE}
    assert found >= wanted


def test_extreme_trials_have_subnormal_and_huge_numbers_that_the_source_takes() -> None:
    rule = of(["Mul", "a", "b"], ["Mul", "b", "a"])
    case = Sampler(rule).sides(Sampler(rule).draw(Random(0)))
    assert case is not None
    rng = np.random.default_rng(0)
    values = [value for _ in range(40) for trial in extreme_trials(case, rng) for value in trial.values]
    sizes = np.abs(np.concatenate([value.ravel() for value in values]))
    assert (sizes < np.finfo(np.float32).tiny).any()
    assert (sizes > 1e17).any()
    assert np.isfinite(sizes).all()


def test_onnx_runtime_takes_an_extreme_number_without_dimensions() -> None:
    """A numpy scalar in place of an array would be refused, and the trial would count as one that cannot be run."""
    rule = rule_from_json("scalar", "test", [["Mul", "a", "b"]], [["Mul", "b", "a"]], {**SQUARE, "b": {"shape": []}})
    case = Sampler(rule).sides(Sampler(rule).draw(Random(0)))
    assert case is not None
    trials = [trial for _ in range(9) for trial in extreme_trials(case, np.random.default_rng(0))]
    assert trials
    assert all(set(outputs) == set(SETTINGS) for outputs in computed(rule, trials, "source"))


def test_what_is_unlike() -> None:
    a = np.array([1.0, np.nan, np.inf, np.inf, -np.inf, np.nan])
    b = np.array([2.0, np.nan, np.inf, -np.inf, 1.0, np.inf])
    assert unlike(a, b).tolist() == [False, False, False, True, True, True]


def test_closeness_is_relative_to_the_largest_number_of_a_draw() -> None:
    reference = np.array([[1e-30, 2e-30], [1.0, 1e10], [0.0, 0.0]])
    values = np.array([[1e-30, 3e-30], [0.0, 1e10], [0.0, np.inf]])
    assert are_close(values, reference).tolist() == [False, True, False]
