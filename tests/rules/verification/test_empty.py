"""Dimensions become dynamic, and are 0, where the matcher would admit the rule at a dynamic size."""

import numpy as np

from rlflow.rules.library import Library
from rlflow.rules.rule import rule_from_json
from rlflow.rules.verification.empty import empty_trials


def trials_of(rule):
    return empty_trials(rule, np.random.default_rng(0))


def test_each_dimension_is_empty_in_some_trial() -> None:
    spec = {"x": {"shape": ["m", "k"]}, "y": {"shape": ["k", "n"]}}
    rule = rule_from_json("sum", "test", [["Relu", ["MatMul", "x", "y"]]], [["MatMul", "x", "y"]], spec)
    shapes = [tuple(value.shape for value in trial.values) for trial in trials_of(rule)]
    assert {tuple(size == 0 for shape in pair for size in shape) for pair in shapes} >= {
        (True, False, False, False),
        (False, True, True, False),
        (False, False, False, True),
        (True, True, True, True),
    }


def test_what_is_stored_and_what_must_be_known_is_never_empty(library: Library) -> None:
    assert not any(trial.values[1].size == 0 for trial in trials_of(library.get("merge-2-matmuls")))
    layer_norm = library.get("fuse-layer-norm")
    names = ["x", "e", "g", "c"]
    assert trials_of(layer_norm)
    assert all(trial.values[names.index("g")].size for trial in trials_of(layer_norm))
    assert any(trial.values[0].size == 0 for trial in trials_of(layer_norm))


def test_a_remedy_names_the_dimension() -> None:
    spec = {"x": {"shape": ["m", "k"]}}
    rule = rule_from_json("once", "test", [["Relu", ["Relu", "x"]]], [["Relu", "x"]], spec)
    found = {tuple(map(str, trial.remedies)) for trial in trials_of(rule)}
    assert ("['<=', 1, ['dim', 'x', -2]]",) in found


def test_a_pool_sees_pixels() -> None:
    """ONNX Runtime ends the process on a pool in the blocked layout that sees neither images nor pixels."""
    pooled = ["GlobalAveragePool", ["Relu", "x"]]
    spec = {"x": {"shape": ["n", "c", "h", "w"]}}
    rule = rule_from_json("pooled", "test", [pooled], [["Relu", pooled]], spec)
    shapes = [trial.values[0].shape for trial in trials_of(rule)]
    assert any(n == 0 for n, *_ in shapes)
    assert all(h and w for _, _, h, w in shapes)
