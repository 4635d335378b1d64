"""What an original computes, on the same inputs in both settings."""

import numpy as np
import pytest
from onnx import helper
from support.drawn_inputs import drawn_inputs
from support.small_models import FLOAT

from rlflow.equivalence.reference import outputs_of, reference_of, run_again, run_original
from rlflow.errors import RLFlowError
from rlflow.runtime.runtimes import open_model
from rlflow.runtime.session import SETTINGS


def test_the_first_setting_is_the_yardstick_and_inputs_are_shared(make_dense):
    model = make_dense()
    both = reference_of(model, draws=2, seed=3)
    assert both.settings == SETTINGS
    assert both.in_setting("as_written") is both.outputs
    alone = reference_of(model, ("deployed",), draws=2, seed=3)
    for left, right in zip(both.inputs, alone.inputs, strict=True):
        np.testing.assert_array_equal(left["x"], right["x"])
    np.testing.assert_array_equal(both.in_setting("deployed")[1]["y"], alone.outputs[1]["y"])


def test_a_setting_can_be_added(make_dense):
    model = make_dense()
    known = run_original(model, open_model(model, "as_written"), draws=1)
    added = run_again(open_model(model, "deployed"), "deployed", known)
    assert known.settings == ("as_written",)
    assert added.settings == ("as_written", "deployed")
    assert added.inputs is known.inputs


def test_given_inputs_are_taken(make_dense):
    model = make_dense()
    inputs = [{"x": np.ones_like(each["x"])} for each in drawn_inputs(model, draws=1)]
    reference = reference_of(model, inputs=inputs)
    assert len(reference.inputs) == 1
    expected = outputs_of(open_model(model, "as_written"), inputs)
    np.testing.assert_array_equal(reference.outputs[0]["y"], expected[0]["y"])


def test_an_original_that_runs_on_no_input_says_so(make_model):
    """A reshape to a size that no drawn input has."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    model = make_model(nodes, [("x", FLOAT, ["n"])], [("y", FLOAT, [7, 13])], {"shape": np.array([7, 13])})
    with pytest.raises(RLFlowError, match="runs on no drawn input; give values to its symbolic dimensions n"):
        reference_of(model)
