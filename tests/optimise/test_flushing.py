"""`rlflow.optimise` on models with subnormal weights: they are gone, it is said why, and nothing else is risked."""

import json

import numpy as np
import onnx
import pytest
from support.conformance.commands import ran
from support.onnx_models import save
from support.small_models import dense_model
from support.subnormal_models import (
    HARMLESS,
    amplified,
    convolutions,
    guarded,
    of_type,
    with_data_outside,
)

import rlflow
from rlflow import schemas
from rlflow.equivalence.compare import compare
from rlflow.optimise.flushing import NEEDED, NO_SUMS, NO_TIME, UNJUDGEABLE
from rlflow.rules.library import Library
from rlflow.schemas.optimise import OptimiseReport
from rlflow.subnormal.flush import decayed

NO_RULES = Library(())


def optimised(model, **settings):
    """Without rules unless some are given: nothing is found but the subnormal weights."""
    found = rlflow.optimise(model, **{"library": NO_RULES, "method": "greedy", "budget_s": 60.0} | settings)
    document = found.report.to_json()
    schemas.validate(OptimiseReport, document)
    return found, document


@pytest.mark.parametrize("name", ["convolutions", "batch norm", "loop"])
def test_subnormal_weights_are_gone(name):
    """Those of a body and those that a fusion makes, too; the outputs are the user's own within the tolerance."""
    model = HARMLESS[name]()
    found, document = optimised(model)
    assert (found.written, decayed(found.model).all) == ("flushed", ())
    expected = decayed(model)
    told = document["subnormals"]
    assert (told["numbers"], told["left"]) == (sum(each.numbers for each in expected.weights), 0)
    assert told["subnormal"] == sum(each.subnormal for each in expected.weights)
    assert told["bound"] == pytest.approx(sum(each.magnitude for each in expected.weights))
    assert told["max_relative_error"] == 0.0 or told["max_relative_error"] < 1e-30
    assert told["latency"]["deployed"]["ratio"] > 0
    assert told["run_ratio"] > 0
    report = compare(model, found.model, seed=5)
    assert (report.equivalent, report.tolerance) == (True, document["equivalence"]["tolerance"])


def test_the_first_line_says_why(tmp_path):
    found, document = optimised(convolutions())
    first, *others = found.report.summary().splitlines()
    numbers = document["subnormals"]["numbers"]
    assert first.startswith(
        f"The result: the original with its subnormal weights at zero ({numbers} numbers in 6 weights"
    )
    assert "on this processor" in first
    assert "processors of Intel may take a hundred times as long with them" in first
    assert any(line.startswith("Subnormal weights: a sum of products loses at most") for line in others)


def test_what_a_search_finds_comes_after_it(library):
    """It is compared with the user's own, and timed against the model without them."""
    found, document = optimised(HARMLESS["transformer block"](), library=library, method="greedy", budget_s=60.0)
    assert found.written in ("flushed", "optimised")
    assert not decayed(found.model).weights
    assert document["equivalence"]["equivalent"]
    assert compare(HARMLESS["transformer block"](), found.model, seed=3).equivalent


def test_a_model_without_them_is_the_very_model():
    model = dense_model()
    found, document = optimised(model)
    assert found.model is model
    assert (found.written, document["subnormals"]) == ("original", None)


def test_a_file_without_them_comes_back_byte_for_byte(tmp_path):
    source, target = save(tmp_path / "in.onnx", "conv"), tmp_path / "out.onnx"
    optimised(source)[0].save(target)
    assert target.read_bytes() == source.read_bytes()


@pytest.mark.parametrize(
    ("make", "because"),
    [(lambda: amplified(1e38), NEEDED), (guarded, NO_SUMS)],
    ids=["a huge constant after them", "an epsilon"],
)
def test_what_may_be_needed_stays(make, because):
    model = make()
    found, document = optimised(model)
    assert found.model is model
    assert found.written == "original"
    assert document["subnormals"]["left_because"] == because
    assert document["subnormals"]["left"] == sum(each.subnormal for each in decayed(model).all) > 0
    assert f"they stay: {because}" in found.report.summary()


def test_float16_stays_as_it_is():
    """Its subnormal numbers are normal where ONNX Runtime computes with them, and 6e-5 would be missed."""
    model = of_type(np.float16, 1e-6)
    found, document = optimised(model)
    assert found.model is model
    assert document["subnormals"] is None


def test_weights_in_another_file(tmp_path):
    source = with_data_outside(convolutions(), tmp_path / "in.onnx")
    optimised(source)[0].save(tmp_path / "out.onnx")
    assert not decayed(onnx.load(tmp_path / "out.onnx")).all
    assert compare(source, tmp_path / "out.onnx").equivalent


def test_without_time_nothing_is_changed():
    model = convolutions()
    found, document = optimised(model, budget_s=1e-3)
    assert found.model is model
    assert document["subnormals"]["left_because"] in (NO_TIME, UNJUDGEABLE)


def test_the_command_writes_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(convolutions(), source)
    said = ran("optimise", str(source), "-o", str(target), "--budget", "8s", "--json")
    assert said.code == 0
    assert json.loads(said.out)["written"] in ("flushed", "optimised")
    assert not decayed(onnx.load(target)).all
