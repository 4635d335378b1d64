"""Differences of outputs: relative to the largest value, exact where there is no rounding."""

import math

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.small_models import FLOAT, one_node, scaled_by

from rlflow.equivalence.compare import compare
from rlflow.equivalence.difference import differences_beyond


def test_errors_are_relative_to_the_largest_value_not_to_each(make_model):
    """Rounding of large intermediates gives small elements large relative errors; that is no fault."""
    original = scaled_by(make_model, 1.0)
    shifted = make_model(
        [helper.make_node("Add", ["x", "tiny"], ["y"])],
        [("x", FLOAT, [4, 5])],
        [("y", FLOAT, [4, 5])],
        {"tiny": np.array(2e-7, np.float32)},
    )
    assert compare(original, shifted).equivalent


def test_introduced_nan_and_infinity_fail(make_model):
    """Relu hides negative values, so sqrt(x) is NaN exactly where relu(x) is 0."""
    root = one_node(make_model, "Sqrt")
    report = compare(one_node(make_model, "Relu"), root)
    assert not report.equivalent
    assert "NaN or infinity" in report.reason
    assert math.isinf(report.max_relative_error)
    assert compare(root, root).equivalent
    assert not compare(root, one_node(make_model, "Relu")).equivalent


def test_signs_of_infinities_matter(make_model):
    def overflow(factor):
        return scaled_by(make_model, factor)

    assert compare(overflow(math.inf), overflow(math.inf)).equivalent
    assert not compare(overflow(math.inf), overflow(-math.inf)).equivalent


def test_integers_and_booleans_agree_exactly(make_model):
    def added(step):
        return make_model(
            [helper.make_node("Add", ["x", "step"], ["y"])],
            [("x", TensorProto.INT64, [3])],
            [("y", TensorProto.INT64, [3])],
            {"step": np.array(step)},
        )

    assert compare(added(10**12), added(10**12)).equivalent
    report = compare(added(10**12), added(10**12 + 1))
    assert report.reason == "output 'y' (int64) differs in 3 of 3 elements"
    identity = one_node(make_model, "Identity", element=TensorProto.BOOL)
    assert compare(identity, identity).equivalent
    assert (
        "(bool) differs in 20 of 20" in compare(identity, one_node(make_model, "Not", element=TensorProto.BOOL)).reason
    )


def test_zero_reference_with_a_nonzero_answer_fails(make_model):
    zero, tiny = scaled_by(make_model, 0.0), scaled_by(make_model, 1e-30)
    report = compare(zero, tiny)
    assert not report.equivalent
    assert math.isinf(report.max_relative_error)


def test_sequences_are_compared_element_by_element(make_model):
    def split(operator):
        model = make_model(
            [
                helper.make_node(operator, ["x"], ["v"]),
                helper.make_node("SplitToSequence", ["v"], ["y"], axis=0),
            ],
            [("x", FLOAT, [2, 3])],
            [],
        )
        model.graph.output.append(helper.make_tensor_sequence_value_info("y", FLOAT, None))
        return model

    assert compare(split("Neg"), split("Neg")).non_vacuous_draws == 3
    assert compare(split("Neg"), split("Abs")).worst_output.startswith("y[")


EXPECTED = np.array([1.0, 2.0], np.float32)
LOSSY = np.array([1.0, 2.5], np.float32)


@pytest.mark.parametrize(
    ("expected", "own", "actual", "is_allowed"),
    [
        (EXPECTED, LOSSY, EXPECTED, True),
        (EXPECTED, LOSSY, np.array([1.2, 2.0], np.float32), True),
        (EXPECTED, LOSSY, LOSSY, True),
        (EXPECTED, LOSSY, np.array([1.6, 2.0], np.float32), False),
        (EXPECTED, EXPECTED.copy(), LOSSY, False),
        (EXPECTED, EXPECTED * np.float32(1 + 1e-7), np.array([1.0, 2.0001], np.float32), False),
        (EXPECTED, np.array([np.nan, 2], np.float32), np.array([np.nan, 2], np.float32), True),
        (EXPECTED, np.array([np.nan, 2], np.float32), EXPECTED, True),
        (EXPECTED, np.array([np.nan, 2], np.float32), np.array([1, np.nan], np.float32), False),
        (np.array([1, 2]), np.array([1, 3]), np.array([1, 3]), True),
        (np.array([1, 2]), np.array([1, 3]), np.array([1, 2]), True),
        (np.array([1, 2]), np.array([1, 3]), np.array([0, 3]), False),
    ],
)
def test_nothing_may_be_farther_off_than_the_original_itself(expected, own, actual, is_allowed):
    """As written `own` is what is expected, and there is no excuse: the last line."""
    sides = ({"y": own}, {"y": expected}, {"y": actual})
    assert all(not each.problem for each in differences_beyond(*sides, 1e-6)) == is_allowed
    strict = differences_beyond(sides[1], sides[1], sides[2], 1e-6)
    assert all(not each.problem for each in strict) == np.array_equal(expected, actual)
