"""A search that is carried out by names is the one that its objects would carry out, and it is timed from the start."""

from pathlib import Path

import pytest
from studies.search_task import SearchTask, carried_out

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostContext
from rlflow.errors import InputError
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx, save_model
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy
from rlflow.trajectory.replay import replay


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks") / "tiny_merge.onnx"
    save_model(zoo.build("tiny_merge"), path)
    return path


def test_the_search_is_that_of_its_names(model: Path) -> None:
    rules = library.load()
    expected = Greedy(rules, Rewriter(rules.rules), AnalyticCost()).optimise(from_onnx(model), Budget())
    found = carried_out(SearchTask(model, "greedy", {}, Budget(), "analytic", CostContext()))
    assert found.result.trajectory == expected.trajectory
    assert found.result.best_ms == expected.best_ms < expected.start_ms
    assert found.cost_model.name == "analytic"
    assert found.wall_time_s >= found.result.wall_time_s > 0


def test_the_rewriter_is_that_of_the_steps(model: Path) -> None:
    """Equality saturation shares, and nothing else could replay what it found."""
    options = {"exploration": {"max_nodes": 200}}
    found = carried_out(SearchTask(model, "equality_saturation", options, Budget(), "analytic", CostContext()))
    *_, last = replay(found.graph, found.result.trajectory, found.rewriter)
    assert found.cost_model.runtime_ms(last) == found.result.best_ms


def test_names_that_there_are_not_are_refused(model: Path) -> None:
    with pytest.raises(InputError, match="there is no method 'unheard_of'"):
        carried_out(SearchTask(model, "unheard_of", {}, Budget(), "analytic", CostContext()))
