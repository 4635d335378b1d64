"""Inputs put to the test: which mutants of a model do they tell from it?"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from studies.measurements import Mutants
from studies.published import publish
from support.mutants import Share, backend_models, ordinary_runs, share_of, zoo_models
from support.small_models import FLOAT
from support.zoo_names import SMALL

from rlflow import zoo
from rlflow.equivalence.drawing import Reference
from rlflow.equivalence.reference import run_original
from rlflow.equivalence.survey import ENOUGH, Survey, surveyed
from rlflow.onnx_io.external_data import write_mapped
from rlflow.runtime.runtimes import open_model


def clipped(make_model, shape=(64,), bound=6.0):
    weights = {"low": np.float32(0), "high": np.float32(bound)}
    stored = {name: np.asarray(value) for name, value in weights.items()}
    node = helper.make_node("Clip", ["x", "low", "high"], ["y"], name="bounded")
    return make_model([node], [("x", FLOAT, list(shape))], [("y", FLOAT, list(shape))], stored)


def test_a_bound_that_no_input_reaches_is_named(make_model):
    """Not vacuous: inputs that are drawn to reach it tell all of the same mutants apart."""
    model = clipped(make_model, bound=30.0)
    session = open_model(model, "as_written")
    revealing = run_original(model, session)
    blind = surveyed(model, ordinary_runs(model, session, revealing))
    assert blind.survivors == ("bounded (30 became 45)",)
    assert not blind.suffices
    assert blind.summary.endswith("mutants apart; nobody looked at bounded (30 became 45)")
    survey = surveyed(model, revealing)
    assert survey == Survey(blind.mutants, blind.mutants)
    assert survey.summary == f"the draws told {survey.mutants} of {survey.mutants} mutants apart"


def test_inputs_are_added_until_enough_is_told_apart(make_model):
    """One number at a time: it takes a few to be on both sides of two bounds."""
    model = clipped(make_model, shape=())
    reference = run_original(model, open_model(model, "as_written"), draws=1)
    survey = surveyed(model, reference)
    assert survey.suffices
    assert len(reference.inputs) > 1
    again = run_original(model, open_model(model, "as_written"), draws=1)
    assert surveyed(model, again) == survey, "of one seed"


def test_inputs_that_were_given_are_not_added_to(make_model):
    model = clipped(make_model)
    session, zeros = open_model(model, "as_written"), {"x": np.zeros(64, np.float32)}
    reference = Reference([zeros], [session.run(zeros)])
    survey = surveyed(model, reference)
    assert (survey.killed, survey.blind, len(reference.inputs)) == (0, True, 1)


def test_a_model_without_operators_has_nothing_to_be_tried(make_model):
    model = make_model([], [("x", FLOAT, [4])], [("x", FLOAT, [4])])
    reference = Reference([{"x": np.zeros(4, np.float32)}], [{"x": np.zeros(4, np.float32)}])
    survey = surveyed(model, reference)
    assert survey == Survey(0, 0)
    assert survey.suffices
    assert not survey.blind


def test_a_sample_of_mutants_and_the_time_for_it(make_model):
    nodes = [helper.make_node("Tanh", [f"v{k}"], [f"v{k + 1}"]) for k in range(20)]
    model = make_model(nodes, [("v0", FLOAT, [16])], [("v20", FLOAT, [16])])
    reference = run_original(model, open_model(model, "as_written"))
    assert surveyed(model, reference, most=7).mutants == 7
    assert surveyed(model, reference, longest_s=0.0) == Survey(0, 0)


def test_weights_in_a_file_stay_there(tmp_path, monkeypatch):
    """Of a file elsewhere as of a model in memory; no mutant holds the weights that all share."""
    model = zoo.build("mlp")
    path = write_mapped(model, tmp_path / "model.onnx")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr(sys.modules[surveyed.__module__], "_HEAVY_BYTES", 1)
    found = [surveyed(each, run_original(each, open_model(each, "as_written"))) for each in (model, path)]
    assert found[0] == found[1]
    assert found[0].killed == found[0].mutants > 10


@pytest.mark.parametrize("element", [TensorProto.BOOL, TensorProto.UINT8, TensorProto.FLOAT16, TensorProto.INT64])
def test_a_model_that_does_nothing_can_do_the_opposite(make_model, element):
    model = make_model([helper.make_node("Identity", ["x"], ["y"])], [("x", element, [9])], [("y", element, [9])])
    assert surveyed(model, run_original(model, open_model(model, "as_written"))) == Survey(1, 1)


@pytest.mark.parametrize("name", ["bert", "mobilenet_v2"])
def test_drawn_inputs_tell_enough_mutants_of_a_model(name):
    """The second one has bounds of 6 behind convolutions."""
    model = zoo.build(name, **SMALL[name])
    survey = surveyed(model, run_original(model, open_model(model, "as_written")))
    assert survey.mutants == 64
    assert survey.suffices


@pytest.mark.fuzz
def test_the_share_over_the_zoo_and_the_backend_tests(repository: Path) -> None:
    tallies = {"zoo": share_of(zoo_models()), "node": share_of(backend_models())}
    publish(repository / "data/results/mutants.json", Mutants, document(tallies), __file__)
    assert "equivalence" not in tallies["zoo"].below
    assert all(t.killed["equivalence"] >= max(ENOUGH * t.mutants, t.killed["ordinary"]) for t in tallies.values())


def document(tallies: dict[str, Share]) -> dict[str, Any]:
    """As schema `mutants` describes it."""
    return {
        "onnx": onnx.__version__,
        "onnxruntime": onnxruntime.__version__,
        "kinds": {kind: share.to_json() for kind, share in tallies.items()},
    }
