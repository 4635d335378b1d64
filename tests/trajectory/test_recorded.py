"""The recorded trajectories, replayed: a change of rules, matching or operators that alters a rewrite shows here.

What is on file is not made by these tests: `make trajectories` records it anew, after a change of the library.
"""

import pytest
from support.recording import FOLDER, MODELS, STEPS, recorded, recording

from rlflow.cost.analytic import AnalyticCost
from rlflow.equivalence.compare import compare
from rlflow.ir.structural_hash import structural_hash
from rlflow.ir.validate import validate
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.replay import replay


@pytest.fixture(scope="module")
def rewriter(shipped):
    return Rewriter(shipped.rules)


def test_there_is_a_dozen_and_they_are_not_trivial():
    """Long enough, of many rules, and over models that are all different."""
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(MODELS)
    every = [recorded(name) for name in MODELS]
    assert len(every) >= 12
    assert len({trajectory.start_hash for trajectory in every}) == len(every)
    assert sum(len(trajectory.steps) == STEPS for trajectory in every) >= 10
    assert all(trajectory.steps for trajectory in every)
    assert len({step.rule for trajectory in every for step in trajectory.steps}) >= 50


@pytest.mark.parametrize("name", MODELS)
def test_they_belong_to_the_library_that_is_shipped(shipped, name):
    assert recorded(name).library == shipped.hash, "the rules have changed: run `make trajectories`"


@pytest.mark.parametrize("name", MODELS)
def test_a_recorded_trajectory_leads_to_the_same_hashes_costs_and_outputs(name, rewriter):
    """`replay` compares the hashes; the cost is counted, not measured; the model at the end runs as the first does."""
    trajectory, model = recorded(name), MODELS[name]()
    graphs, cost_model = list(replay(from_onnx(model), trajectory, rewriter)), AnalyticCost()
    assert structural_hash(graphs[-1]) == trajectory.steps[-1].hash != trajectory.start_hash
    costs = [trajectory.start_runtime_ms, *(step.runtime_ms for step in trajectory.steps)]
    assert [cost_model.runtime_ms(graph) for graph in graphs] == pytest.approx(costs, rel=1e-12)
    validate(graphs[-1])
    end = to_onnx(graphs[-1])
    check_model(end)
    report = compare(model, end)
    assert report.equivalent, report.summary
    assert report.non_vacuous_draws == report.draws


@pytest.mark.parametrize("name", ["branches", "tiny_chain"])
def test_recording_anew_gives_what_is_on_file(name, shipped, rewriter):
    """So that `make trajectories` changes nothing where nothing has changed."""
    trajectory, end = recording(name, shipped, rewriter)
    assert trajectory == recorded(name)
    assert structural_hash(end) == trajectory.steps[-1].hash
