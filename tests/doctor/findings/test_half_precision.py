"""A model of float16 on a processor without kernels for it."""

import numpy as np
import pytest
from onnx import helper
from support.examined import subject_of
from support.small_models import build_model, dense_model

from rlflow.doctor.findings.half_precision import half_precision
from rlflow.runtime.kernel_runs import kernel_runs


def functions():
    """Functions of float16 of which each has its own conversions."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(np.float16))
    nodes = [helper.make_node("Softmax", ["x"], ["h"]), helper.make_node("Tanh", ["h"], ["y"])]
    return build_model(nodes, [("x", element, [64, 64])], [("y", element, [64, 64])])


def test_float32_is_not_looked_at(tmp_path):
    assert not list(half_precision(subject_of(dense_model(), tmp_path)))


def test_conversions_are_counted_and_their_share_is_told(tmp_path):
    """How many there are is up to the processor; without one there is nothing to say."""
    subject = subject_of(functions(), tmp_path)
    conversions = sum(each.operator == "Cast" for each in kernel_runs(subject.file, subject.inputs))
    found = list(half_precision(subject))
    if not conversions:
        pytest.skip("this processor has kernels of float16 for all of them")
    assert f"{conversions} conversions a run" in found[0].found
    assert "float32" in found[0].advice
    assert found[0].remedy is None, "its inputs would have another type"
