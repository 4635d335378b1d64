"""Differences of outputs: relative to the largest value, exact where there is no rounding."""

import math

import numpy as np
from onnx import TensorProto, helper
from support.small_models import FLOAT, one_node, scaled_by

from rlflow.equivalence.compare import compare


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
