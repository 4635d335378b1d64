"""A search that is carried out by names is the one that its objects would carry out, and it is timed from the start."""

from pathlib import Path

import pytest
from studies.search_task import SearchTask, carried_out
from studies.subject import Subject

from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostContext
from rlflow.errors import InputError
from rlflow.method import Budget
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy
from rlflow.trajectory.replay import replay


@pytest.fixture
def subject(tiny_merge: Path) -> Subject:
    return Subject(tiny_merge, "analytic", CostContext())


def test_the_search_is_that_of_its_names(subject: Subject) -> None:
    rules = library.load()
    expected = Greedy(rules, Rewriter(rules.rules), AnalyticCost()).optimise(subject.graph(), Budget())
    found = carried_out(SearchTask(subject, "greedy", {}, Budget()))
    assert found.result.trajectory == expected.trajectory
    assert found.result.best_ms == expected.best_ms < expected.start_ms
    assert found.cost_model.name == "analytic"
    assert found.wall_time_s >= found.result.wall_time_s > 0


@pytest.mark.slow
def test_the_rewriter_is_that_of_the_steps(subject: Subject) -> None:
    """Equality saturation shares, and nothing else could replay what it found."""
    options = {"exploration": {"max_nodes": 200}}
    found = carried_out(SearchTask(subject, "equality_saturation", options, Budget()))
    *_, last = replay(found.graph, found.result.trajectory, found.rewriter)
    assert found.cost_model.runtime_ms(last) == found.result.best_ms


def test_names_that_there_are_not_are_refused(subject: Subject) -> None:
    with pytest.raises(InputError, match="there is no method 'unheard_of'"):
        carried_out(SearchTask(subject, "unheard_of", {}, Budget()))
