"""An examination: finders look one after another, and what they mend is mended for all after them."""

import numpy as np
import onnx
import pytest
from onnx import helper
from support.small_models import FLOAT, build_model, dense_model
from support.subnormal_models import convolutions

from rlflow.doctor.examination import NO_TIME, examine
from rlflow.doctor.finders import FINDERS
from rlflow.errors import InputError
from rlflow.optimise.gate import GateConfig
from rlflow.runtime.hardware import usable_cores
from rlflow.subnormal.flush import decayed

STATIC = ["subnormal weights", "weights stored twice", "larger file"]
BRIEF = GateConfig(rounds=2, draws=1)


def twice_and_idle():
    """Convolutions that have decayed, whose last filters are stored twice, with a weight that nobody reads."""
    model = convolutions()
    copy = model.graph.initializer.add()
    copy.CopyFrom(model.graph.initializer[0])
    copy.name = "again"
    model.graph.node[2].input[1] = "again"
    idle = model.graph.initializer.add()
    idle.CopyFrom(onnx.numpy_helper.from_array(np.ones(999, np.float32), "idle"))
    return model


def test_a_healthy_model_is_left_as_it_is(tmp_path):
    onnx.save(dense_model(), tmp_path / "in.onnx")
    examined = examine(tmp_path / "in.onnx", finders=STATIC, config=BRIEF)
    assert (examined.findings, dict(examined.not_looked_for)) == ((), {})
    examined.save(tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx").read_bytes() == (tmp_path / "in.onnx").read_bytes()


def test_each_finder_looks_at_what_those_before_have_left():
    model = twice_and_idle()
    before = model.SerializeToString()
    examined = examine(model, finders=STATIC, config=BRIEF)
    assert [name for name, _ in examined.findings] == STATIC
    assert all(finding.advice for finding in examined.to_do)
    assert not decayed(examined.model).all
    assert {t.name for t in examined.model.graph.initializer}.isdisjoint({"again", "idle"})
    assert model.SerializeToString() == before


def test_all_finders_look_and_say_why_not(tmp_path):
    examined = examine(dense_model(), budget_s=120.0, config=BRIEF)
    looked = {name for name, _ in examined.findings}
    assert looked | set(examined.not_looked_for) <= set(FINDERS.names())
    assert "subnormal weights" not in looked | set(examined.not_looked_for)


def test_without_time_nobody_looks():
    examined = examine(convolutions(), budget_s=1e-3, config=BRIEF)
    assert dict(examined.not_looked_for) == dict.fromkeys(FINDERS.names(), NO_TIME)
    assert examined.findings == ()


def test_what_cannot_be_run_is_said_by_those_who_have_to_run_it():
    """A model of dynamic sizes that nobody names can be looked through, but not run."""
    model = build_model([helper.make_node("Neg", ["x"], ["y"])], [("x", FLOAT, ["n", 4])], [("y", FLOAT, ["n", 4])])
    examined = examine(model, finders=["larger file", "threads"], config=BRIEF)
    assert "dynamic" in examined.not_looked_for["threads"] or usable_cores() == 1
    assert "larger file" not in examined.not_looked_for


def test_an_unknown_finder_is_refused():
    with pytest.raises(InputError, match="no finder 'hiccups'"):
        examine(dense_model(), finders=["hiccups"])
