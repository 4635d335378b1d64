"""Budgets, and the way to a state."""

from itertools import pairwise

import pytest

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.errors import InputError
from rlflow.onnx_io import from_onnx
from rlflow.optimiser import Budget, Effort, OptimisationResult, State, Workspace
from rlflow.rules import library as rule_library
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.trajectory.record import Trajectory


@pytest.fixture
def workspace():
    library = rule_library.load()
    graph = from_onnx(zoo.build("tiny_transpose"))
    return Workspace.begin(graph, Rewriter(library.rules), AnalyticCost(), library.hash, Budget(expansions=4))


@pytest.mark.parametrize("budget", [{"time_s": 0}, {"time_s": -1.0}, {"expansions": 0}, {"expansions": -3}])
def test_an_impossible_budget_is_refused(budget):
    with pytest.raises(InputError, match="a budget must be positive"):
        Budget(**budget)


def test_a_budget_that_is_not_a_number_is_refused():
    with pytest.raises(InputError, match="a budget must be positive"):
        Budget(time_s=float("nan"))


def test_a_budget_of_expansions_is_spent_by_expansions_alone(workspace):
    spent = {}
    for workspace.expansions in (0, 1, 3, 4, 9):
        spent[workspace.expansions] = (workspace.is_spent, workspace.fraction)
    assert spent == {0: (False, 0.0), 1: (False, 0.25), 3: (False, 0.75), 4: (True, 1.0), 9: (True, 1.0)}


def test_a_budget_of_time_is_spent_by_the_clock(workspace):
    workspace.budget = Budget(time_s=100.0)
    assert not workspace.is_out_of_time
    workspace.started -= 50
    assert workspace.fraction == pytest.approx(0.5, abs=0.05)
    workspace.started -= 51
    assert workspace.is_out_of_time
    assert workspace.is_spent
    assert workspace.fraction == 1.0


def test_a_way_may_be_longer_than_the_stack_is_deep():
    """A large model takes thousands of rewrites; Python stops at 1000 nested calls."""
    state = State(from_onnx(zoo.build("tiny_scale")), 1.0)
    for _ in range(3000):
        state = State(state.graph, state.runtime_ms, state, Location(0, 0))
    assert state.depth == 3000
    path = state.path()
    assert len(path) == 3001
    assert path[0].parent is None
    assert path[-1] is state


def test_a_result_follows_from_the_way(workspace):
    """Steps, rewards and improvement of a way, each from the states on it."""
    states = [workspace.start]
    for _ in range(3):
        states.append(workspace.step(states[-1], workspace.actions(states[-1])[0]))
    result = workspace.result(states[-1])
    assert result.effort.rewrites == 3
    assert result.best is states[-1].graph
    assert [s.hash for s in result.trajectory.steps] == [s.hash for s in states[1:]]
    assert [s.runtime_ms for s in result.trajectory.steps] == [s.runtime_ms for s in states[1:]]
    start = states[0].runtime_ms
    expected = [100 * (a.runtime_ms - b.runtime_ms) / start for a, b in pairwise(states)]
    assert [s.reward for s in result.trajectory.steps] == pytest.approx(expected, rel=1e-12)
    assert result.improvement_percent == pytest.approx(sum(expected), rel=1e-9)
    assert workspace.result(states[0]).trajectory.steps == ()


def test_a_model_that_costs_nothing_improves_by_nothing():
    graph = from_onnx(zoo.build("tiny_scale"))
    result = OptimisationResult(graph, 0.0, 0.0, Trajectory("h", 0.0, "analytic", "l", ()), 0.1, Effort())
    assert result.improvement_percent == 0.0
