"""Subnormal weights go where no output depends on them, and stay where a constant makes something of them."""

import numpy as np
import pytest
from support.subnormal_models import HARMLESS, amplified, branches

from rlflow.equivalence.reference import reference_of
from rlflow.onnx_io.external_data import write_mapped
from rlflow.runtime.isolation import ProcessTimeout
from rlflow.runtime.session import open_session, run
from rlflow.subnormal.flush import decayed, multiplied
from rlflow.subnormal.trial import Trial, harmless


def trial_of(model, folder, **settings):
    file = write_mapped(model, folder / "original.onnx")
    return Trial(model, file, reference_of(file), **settings)


def tried(model, folder):
    kept, report = harmless(decayed(model).weights, trial_of(model, folder))
    return {each.name for each in kept}, report


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_weights_go(tmp_path, name):
    model = HARMLESS[name]()
    kept, report = tried(model, tmp_path)
    assert kept == {each.name for each in decayed(model).weights}
    assert report.equivalent
    assert set(report.by_setting) == {"as_written", "deployed"}


@pytest.mark.parametrize(("factor", "goes"), [(1.0, True), (1e6, True), (1e30, False), (1e38, False)])
def test_a_huge_constant_after_them_keeps_them(tmp_path, factor, goes):
    """At 1e30 the loss is 1e-8 of the output, below every tolerance; a million times larger it would be seen."""
    kept, _ = tried(amplified(factor), tmp_path)
    assert kept == ({"w"} if goes else set())


def test_of_several_the_one_to_blame_stays(tmp_path):
    """The same product twice, of which the second one's result is amplified."""
    model = amplified(1e38)
    for node in amplified(1.0).graph.node:
        copy = model.graph.node.add()
        copy.CopyFrom(node)
        copy.input[:] = [f"{name}_2" if name != "x" else name for name in copy.input]
        copy.output[:] = [f"{name}_2" for name in copy.output]
    for tensor in amplified(1.0).graph.initializer:
        copy = model.graph.initializer.add()
        copy.CopyFrom(tensor)
        copy.name += "_2"
    output = model.graph.output.add()
    output.CopyFrom(model.graph.output[0])
    output.name += "_2"
    assert {each.name for each in decayed(model).weights} == {"w", "w_2"}
    assert tried(model, tmp_path)[0] == {"w_2"}


def test_a_branch_that_no_input_takes_is_tried_by_itself(tmp_path):
    """Not vacuous: on these inputs both outputs are the same to the bit, whatever the other branch does."""
    model = branches()
    v = [each for each in decayed(model).weights if each.name == "v"]
    x = {"x": np.ones((4, 8), np.float32)}
    outputs = [run(open_session(each, "as_written"), x)["y"] for each in (model, multiplied(model, v, 0.0))]
    np.testing.assert_array_equal(*outputs)
    assert tried(model, tmp_path)[0] == {"w"}


def test_no_time_is_said(tmp_path):
    model = amplified(1.0)
    with pytest.raises(ProcessTimeout):
        harmless(decayed(model).weights, trial_of(model, tmp_path, left_s=lambda: 0.0))
