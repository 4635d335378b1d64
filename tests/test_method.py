"""Budgets, the way to a state, and searches that price rewrites without carrying them out."""

import time
from dataclasses import replace
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
from rlflow.method import Budget, Effort, Ledger, OptimisationResult, State, Workspace
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
    return Workspace.begin(graph, Rewriter(library.rules), AnalyticCost(), library.hash, Ledger(Budget(expansions=4)))


@pytest.mark.parametrize(
    "budget", [{"time_s": 0}, {"time_s": -1.0}, {"expansions": 0}, {"expansions": -3}, {"rewrites": 0}]
)
def test_an_impossible_budget_is_refused(budget):
    with pytest.raises(InputError, match="a budget must be positive"):
        Budget(**budget)


def test_a_budget_that_is_not_a_number_is_refused():
    with pytest.raises(InputError, match="a budget must be positive"):
        Budget(time_s=float("nan"))


def test_a_budget_of_expansions_is_spent_by_expansions_alone():
    ledger, spent = Ledger(Budget(expansions=4)), {}
    for ledger.tally.expansions in (0, 1, 3, 4, 9):
        spent[ledger.expansions] = (ledger.is_spent, ledger.fraction, ledger.expansions_left)
    assert spent == {0: (False, 0.0, 4), 1: (False, 0.25, 3), 3: (False, 0.75, 1), 4: (True, 1.0, 0), 9: (True, 1.0, 0)}


def test_a_budget_of_rewrites_is_spent_by_rewrites_alone():
    """Wherever they were carried out; expansions are none."""
    ledger = Ledger(Budget(rewrites=4))
    assert not ledger.limits.is_endless
    ledger.tally.expansions = 1000
    spent = []
    for _ in range(4):
        spent.append((ledger.is_spent, ledger.fraction))
        ledger.tally.count(Effort(rewrites=2))
    assert spent == [(False, 0.0), (False, 0.5), (True, 1.0), (True, 1.0)]


def since(seconds: float, budget: Budget) -> Ledger:
    """Return the account of a method that began so many seconds ago."""
    return Ledger(budget, started=time.perf_counter() - seconds)


def test_a_budget_of_time_is_spent_by_the_clock():
    assert not since(0.0, Budget(time_s=100.0)).is_out_of_time
    assert since(50.0, Budget(time_s=100.0)).fraction == pytest.approx(0.5, abs=0.05)
    late = since(101.0, Budget(time_s=100.0))
    assert late.is_out_of_time
    assert late.is_spent
    assert (late.fraction, late.time_left_s) == (1.0, 0.0)


def test_what_a_search_inside_spends_is_spent_by_the_whole():
    """And it may spend no more than is left of the whole: 3 of its 5 rewrites, since 7 of 10 are gone."""
    whole = Ledger(Budget(rewrites=10, expansions=100))
    whole.tally.count(Effort(rewrites=5))
    inside = whole.child(rewrites=2)
    assert (inside.rewrites_left, inside.expansions_left, inside.is_spent) == (2, 100, False)
    inside.tally.count(Effort(rewrites=2))
    inside.note(1.0)
    assert inside.is_spent
    assert (whole.rewrites_left, whole.is_spent) == (3, False)
    assert [milestone.rewrites for milestone in whole.milestones] == [7]
    assert whole.child(rewrites=5).rewrites_left == 3
    assert Ledger(Budget()).child(rewrites=5).rewrites_left == 5


def test_a_part_is_a_share_of_what_is_left():
    """A hundredth of 40 expansions is one of them, since a search that may spend nothing cannot be asked for."""
    whole = since(20.0, Budget(time_s=100.0, expansions=50, rewrites=10))
    whole.tally.expansions = 10
    half, little = whole.part(0.5), whole.part(0.01)
    assert half.time_left_s == pytest.approx(40.0, abs=1.0)
    assert (half.expansions_left, half.rewrites_left) == (20, 5)
    assert (little.expansions_left, little.rewrites_left) == (1, 1)
    assert Ledger(Budget()).part(0.5).limits == Budget()


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
    paid = replace(states[-1], reward=7.0)
    rewards = [s.reward for s in workspace.result(paid).trajectory.steps]
    assert rewards == [*(s.reward for s in result.trajectory.steps[:2]), 7.0], "what an environment paid is kept"


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
    options = workspace.options(workspace.start)
    next(options)
    workspace.ledger = since(101.0, Budget(time_s=100.0))
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
