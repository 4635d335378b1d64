"""Weights with NaN are named; infinities of a mask are not."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.examined import subject_of
from support.small_models import FLOAT, build_model

from rlflow.doctor.findings.not_numbers import not_numbers


def spoilt(value: float):
    """The model adds a mask to a product by a weight, which both hold the value once."""
    weight, mask = np.ones((4, 4), np.float32), np.zeros((4, 4), np.float32)
    weight[1, 2] = mask[0, 0] = value
    nodes = [helper.make_node("MatMul", ["x", "weight"], ["h"]), helper.make_node("Add", ["h", "mask"], ["y"])]
    return build_model(nodes, [("x", FLOAT, [4, 4])], [("y", FLOAT, [4, 4])], {"weight": weight, "mask": mask})


def test_both_are_named(tmp_path):
    (finding,) = not_numbers(subject_of(spoilt(np.nan), tmp_path))
    assert finding.found.startswith("2 weights (weight, mask) with NaN, 2 numbers in all")
    assert finding.remedy is None


@pytest.mark.parametrize("value", [-np.inf, 0.0])
def test_infinities_are_none(value, tmp_path):
    assert not list(not_numbers(subject_of(spoilt(value), tmp_path)))


@pytest.mark.parametrize(("element", "values"), [(TensorProto.STRING, [b"a", b"b"]), (TensorProto.INT4, [1, 2])])
def test_what_holds_no_floats_has_no_nan(element, values, tmp_path):
    model = spoilt(0.0)
    model.graph.initializer.append(helper.make_tensor("other", element, [2], values))
    assert not list(not_numbers(subject_of(model, tmp_path)))


def test_bfloat16_has_nan_as_well(tmp_path):
    model = spoilt(0.0)
    model.graph.initializer.append(helper.make_tensor("other", TensorProto.BFLOAT16, [2], [1.0, float("nan")]))
    (finding,) = not_numbers(subject_of(model, tmp_path))
    assert finding.found.startswith("1 weight (other) with NaN, 1 number in all")
