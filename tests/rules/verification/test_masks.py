"""Masks are drawn where a rule lets them pass, and nowhere else."""

from random import Random

import numpy as np
import pytest

from rlflow.rules.library import Library
from rlflow.rules.rule import rule_from_json
from rlflow.rules.verification.masks import HIDING, mask_operands, mask_trials
from rlflow.rules.verification.sampler import Sampler

SCORES = ["Add", ["Mul", "x", "y"], "m"]
TARGET = ["Softmax", {"axis": -1}, ["Add", "m", ["Mul", "x", "y"]]]
ALIKE = {name: {"shape": ["r", "c"]} for name in "xym"}
RULE = rule_from_json("scores", "test", [["Softmax", {"axis": -1}, SCORES]], [TARGET], ALIKE)


def test_a_mask_passes_sums_and_movement_and_no_product() -> None:
    assert mask_operands(RULE) == ("m",)
    turned = ["Softmax", {"axis": -1}, ["Transpose", {"perm": [1, 0]}, SCORES]]
    assert mask_operands(rule_from_json("turned", "test", [turned], ["m"], ALIKE)) == ("m",)
    inside = ["MatMul", ["Softmax", {"axis": -1}, ["Add", "x", "m"]], "y"]
    assert mask_operands(rule_from_json("inside", "test", [inside], ["m"], ALIKE)) == ("x", "m")


def test_what_must_be_bounded_is_masked_by_no_more_than_its_bound(library: Library) -> None:
    shift = library.get("drop-softmax-shift")
    case = Sampler(shift).sides(Sampler(shift).draw(Random(1)))
    assert case is not None
    drawn = {trial.drawn.split(" altogether")[0] for trial in mask_trials(shift, case, np.random.default_rng(0))}
    assert drawn == {"s masked by -1e+04", *(f"x masked by {number:.3g}" for number in HIDING)}


def test_each_hiding_number_is_drawn_in_parts_and_over_all_rows() -> None:
    case = Sampler(RULE).sides(Sampler(RULE).draw(Random(3)))
    assert case is not None
    trials = list(mask_trials(RULE, case, np.random.default_rng(0)))
    masks = [trial.values[list(case.instance.types).index("m")] for trial in trials if " masked " in trial.drawn]
    assert {float(mask.min()) for mask in masks if mask.min() < 0} == {float(np.float32(n)) for n in HIDING}
    assert sum(bool((mask < 0).all()) for mask in masks) >= len(HIDING)
    made = [trial for trial in trials if "made by" in trial.drawn]
    assert len(made) == 2 * (len(HIDING) - 1)
    assert all(set(np.unique(trial.values[-1])) <= {0.0, 1.0} for trial in made)


@pytest.mark.parametrize("trial_of", ["x", "y"])
def test_a_factor_that_hides_has_zeros_and_ones_beside_it(trial_of: str) -> None:
    case = Sampler(RULE).sides(Sampler(RULE).draw(Random(0)))
    assert case is not None
    trials = [t for t in mask_trials(RULE, case, np.random.default_rng(0)) if f"made by {trial_of}," in t.drawn]
    names = list(case.instance.types)
    for trial in trials:
        assert (trial.values[names.index(trial_of)] <= -1e4).all()
