"""Greedy, backtracking and random search: optimal where that is known, within the budget, the best and not the last."""

from dataclasses import dataclass

import pytest
from support.searches import METHODS, SEARCHING, make

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Budget, Ledger, OptimisationResult
from rlflow.onnx_io import from_onnx
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.replay import replay

SHORT_EPISODES = {"random": {"episode_steps": 5}}
"""Of hundreds of rules most make a graph larger: a long random walk seldom comes by a better one."""


@pytest.mark.parametrize("method", ["greedy", "backtracking"])
@pytest.mark.parametrize("name", ["tiny_chain", "tiny_merge", "tiny_transpose"])
def test_a_known_optimum_is_reached(shipped, tiny, method, name):
    """Each step towards it is a gain, so greedy must find it as well; the start is at least a fifth dearer."""
    graph, model = tiny(name), AnalyticCost()
    result = make(method, shipped).optimise(graph, SEARCHING)
    optimum = model.runtime_ms(from_onnx(zoo.optimum(name)))
    assert result.best_ms == pytest.approx(optimum, rel=1e-12)
    assert result.start_ms == model.runtime_ms(graph) > 1.2 * optimum
    assert result.best_ms == model.runtime_ms(result.best)


@pytest.mark.parametrize("method", METHODS)
def test_rewrites_are_counted_when_they_are_carried_out(shipped, bert, method):
    search = make(method, shipped)
    result = search.optimise(bert, Budget(expansions=5))
    assert result.effort.rewrites == search.rewriter.applied > 0


@pytest.mark.parametrize("method", METHODS)
def test_a_search_that_is_called_off_returns_the_best_so_far(shipped, bert, method):
    """Soon after the answer has changed. Not vacuous: left alone, it would have gone on."""
    asked = []
    budget = Budget(is_called_off=lambda: asked.append(None) or len(asked) > 120)
    result = make(method, shipped).optimise(bert, budget)
    assert 120 < len(asked) < 180
    assert result.best_ms <= result.start_ms
    *_, last = replay(bert, result.trajectory, Rewriter(shipped.rules))
    assert structural_hash(last) == structural_hash(result.best)


def test_expansions_are_counted_as_they_are_defined(shipped, bert):
    """Random: rewrites. Greedy and backtracking: graphs whose neighbours are all looked at."""
    neighbours = sum(map(len, Rewriter(shipped.rules).matches(bert)))
    assert make("random", shipped).optimise(bert, Budget(expansions=7)).effort.rewrites == 7
    for method in ("greedy", "backtracking"):
        assert make(method, shipped).optimise(bert, Budget(expansions=1)).effort.prices_asked == 1 + neighbours
        assert make(method, shipped).optimise(bert, Budget(expansions=2)).effort.prices_asked > 1 + neighbours
    assert len(make("greedy", shipped).optimise(bert, Budget(expansions=3)).trajectory.steps) == 3


class CountedCost(AnalyticCost):
    """Knows how many graphs it has priced."""

    def __init__(self):
        super().__init__()
        self.priced = 0

    def runtime_ms(self, graph):
        self.priced += 1
        return super().runtime_ms(graph)


@pytest.mark.parametrize("method", METHODS)
def test_a_budget_of_time_is_kept_within_an_expansion(shipped, bert, monkeypatch, method):
    """By a clock on which each graph takes 10 ms, all neighbours of this one take over four times the budget.

    A few prices are remembered and take no time: those that one member of a portfolio asks for after another.
    """
    assert sum(map(len, Rewriter(shipped.rules).matches(bert))) > 40
    cost_model = CountedCost()
    monkeypatch.setattr(Ledger, "elapsed_s", property(lambda ledger: 0.01 * cost_model.priced))
    result = make(method, shipped, cost_model).optimise(bert, Budget(time_s=0.1))
    assert 0.1 <= result.wall_time_s < 0.12
    assert 1 < result.effort.prices_asked <= 15


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_result(shipped, bert, method):
    first, second = (make(method, shipped).optimise(bert, Budget(expansions=15)) for _ in range(2))
    assert first.trajectory == second.trajectory
    assert structural_hash(first.best) == structural_hash(second.best)
    assert (first.effort.rewrites, first.effort.prices_asked) == (second.effort.rewrites, second.effort.prices_asked)


class Watched(AnalyticCost):
    """Remembers every price that it was asked for."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def runtime_ms(self, graph):
        self.asked.append(super().runtime_ms(graph))
        return self.asked[-1]


@dataclass(frozen=True)
class Searched:
    """A search of a hundred expansions, and every price that it asked for, in order."""

    result: OptimisationResult
    asked: list[float]


@pytest.fixture(scope="module", params=METHODS)
def searched(request, shipped, bert) -> Searched:
    """One run by each method, which the tests below look at."""
    model = Watched()
    search = make(request.param, shipped, model, **SHORT_EPISODES.get(request.param, {}))
    return Searched(search.optimise(bert, Budget(expansions=100)), model.asked)


def test_the_best_graph_is_returned_not_the_last(searched):
    """Of all graphs that were priced; some that were priced after it are dearer."""
    result, asked = searched.result, searched.asked
    assert result.best_ms == min(asked)
    assert result.start_ms == asked[0] > result.best_ms
    assert max(asked[asked.index(result.best_ms) :]) > result.best_ms


def test_the_trajectory_leads_to_the_best_graph(shipped, bert, searched):
    result = searched.result
    steps = result.trajectory.steps
    *_, last = replay(bert, result.trajectory, Rewriter(shipped.rules))
    assert structural_hash(last) == structural_hash(result.best) == steps[-1].hash
    assert steps[-1].runtime_ms == result.best_ms
    assert sum(s.reward for s in steps) == pytest.approx(result.improvement_percent, rel=1e-9)
    assert result.trajectory.library == shipped.hash
    assert result.trajectory.cost_model == "analytic"


@pytest.mark.parametrize("method", METHODS)
def test_nothing_to_rewrite_returns_the_graph(shipped, bert, method):
    nothing = shipped.select([])
    result = make(method, nothing).optimise(bert, Budget(expansions=5))
    assert result.best is bert
    assert (result.effort.rewrites, result.improvement_percent) == (0, 0.0)


@pytest.mark.parametrize("method", METHODS)
def test_progress_is_a_fraction_that_grows(shipped, bert, method):
    seen = []
    make(method, shipped).optimise(bert, Budget(expansions=20), lambda fraction, text: seen.append((fraction, text)))
    fractions = [fraction for fraction, _ in seen]
    assert fractions == sorted(fractions)
    assert 0 < fractions[0] <= fractions[-1] <= 1
    assert all("ms" in text for _, text in seen)
