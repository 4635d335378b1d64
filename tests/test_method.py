"""Budgets, the way to a state, and searches that price rewrites without carrying them out."""

from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.prices import AsAWhole, drawn_prices
from support.strategies import graphs
from support.walks import LIBRARY, REWRITER

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.errors import InputError
from rlflow.method import Budget, Effort, OptimisationResult, State, Workspace
from rlflow.onnx_io import from_onnx
from rlflow.rules import library as rule_library
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.search.backtracking import Backtracking
from rlflow.search.greedy import Greedy
from rlflow.search.random import RandomSearch
from rlflow.trajectory.record import Trajectory


@pytest.fixture
def workspace():
    library = rule_library.load()
    graph = from_onnx(zoo.build("tiny_transpose"))
    return Workspace.begin(graph, Rewriter(library.rules), AnalyticCost(), library.hash, Budget(expansions=4))


@pytest.mark.parametrize(
    "budget", [{"time_s": 0}, {"time_s": -1.0}, {"expansions": 0}, {"expansions": -3}, {"rewrites": 0}]
)
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


def test_a_budget_of_rewrites_is_spent_by_rewrites_alone(workspace):
    """Wherever they were carried out; expansions are none."""
    workspace.budget = Budget(rewrites=4)
    assert not workspace.budget.is_endless
    workspace.expansions = 1000
    spent = []
    for _ in range(4):
        spent.append((workspace.is_spent, workspace.fraction))
        workspace.evaluator.count(Effort(rewrites=2))
    assert spent == [(False, 0.0), (False, 0.5), (True, 1.0), (True, 1.0)]


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


@pytest.fixture(scope="module")
def small_bert():
    return from_onnx(zoo.build("bert", **dict(zoo.describe("bert").small)))


def test_options_are_all_rewrites_in_order_with_the_prices_of_the_graphs_after_them(workspace):
    options = list(workspace.options(workspace.start))
    assert [option.action for option in options] == workspace.actions(workspace.start)
    for option in options:
        child = workspace.take(workspace.start, option)
        assert (child.runtime_ms, child.action, child.parent) == (option.runtime_ms, option.action, workspace.start)
        assert child.hash == workspace.step(workspace.start, option.action).hash
        assert child.runtime_ms == AnalyticCost().runtime_ms(child.graph)


def test_options_end_when_the_time_is_over(workspace):
    workspace.budget = Budget(time_s=100.0)
    options = workspace.options(workspace.start)
    next(options)
    workspace.started -= 101
    assert list(options) == []


def test_milestones_are_the_start_and_each_graph_that_was_the_cheapest_so_far(workspace):
    """Not vacuous: some rewrites save more than all before them, others do not."""
    children = [workspace.take(workspace.start, option) for option in workspace.options(workspace.start)]
    prices = [workspace.start.runtime_ms, *(child.runtime_ms for child in children)]
    result = workspace.result(min(children, key=lambda child: child.runtime_ms))
    records = [ms for place, ms in enumerate(prices) if ms < min(prices[:place], default=float("inf"))]
    assert [milestone.runtime_ms for milestone in result.milestones] == records
    assert 1 < len(records) < len(prices)
    assert (result.milestones[0].rewrites, result.milestones[-1].runtime_ms) == (0, result.best_ms)
    for before, after in pairwise(result.milestones):
        assert (before.rewrites, before.wall_time_s) < (after.rewrites, after.wall_time_s)


def trajectories(graph, search, cost_model):
    """The trajectory with remembered prices, and with those of a model that is asked about whole graphs."""
    found = [search(model).optimise(graph, EACH) for model in (cost_model(), AsAWhole(cost_model()))]
    return [(r.trajectory, r.best_ms, r.start_ms, r.effort.prices_asked) for r in found], found


EACH = Budget(expansions=12)
COSTS = {"analytic": AnalyticCost, "deployed": drawn_prices}
SEARCHES = {
    "greedy": partial(Greedy, LIBRARY, REWRITER),
    "backtracking": partial(Backtracking, LIBRARY, REWRITER),
    "random": partial(RandomSearch, LIBRARY, REWRITER),
}


@pytest.mark.parametrize("kind", COSTS)
@pytest.mark.parametrize("method", SEARCHES)
def test_searches_do_with_remembered_prices_what_they_do_without(small_bert, method, kind):
    """To the bit: prices, locations, hashes. With fewer rewrites, where a search asks for more than it takes."""
    (lazy, naive), results = trajectories(small_bert, SEARCHES[method], COSTS[kind])
    assert lazy == naive
    assert lazy[0].steps or method == "random"  # a dozen random rewrites need not save anything
    rewrites = [result.effort.rewrites for result in results]
    assert rewrites[0] == rewrites[1] == 12 if method == "random" else rewrites[0] < rewrites[1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", COSTS)
@pytest.mark.parametrize("method", SEARCHES)
@pytest.mark.parametrize(
    "name", ["dalle", "gpt2", "t5_decoder", "squeezenet1_1", "transformer_transducer", "tiny_merge"]
)
def test_searches_do_with_remembered_prices_what_they_do_without_on_other_graphs(name, method, kind):
    graph = from_onnx(zoo.build(name, **dict(zoo.describe(name).small)))
    (lazy, naive), _ = trajectories(graph, SEARCHES[method], COSTS[kind])
    assert lazy == naive


@settings(max_examples=30)
@given(graphs(), st.sampled_from(sorted(SEARCHES)), st.sampled_from(sorted(COSTS)))
def test_searches_do_with_remembered_prices_what_they_do_without_on_drawn_graphs(graph, method, kind):
    (lazy, naive), _ = trajectories(graph, SEARCHES[method], COSTS[kind])
    assert lazy == naive
