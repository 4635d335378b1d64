"""Greedy, backtracking and random search: optimal where that is known, within the budget, the best and not the last."""

import pytest
from support.searches import CountingRewriter

from rlflow import zoo
from rlflow.cost.analytic import AnalyticConfig, AnalyticCost
from rlflow.errors import InputError
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import from_onnx
from rlflow.optimiser import Budget, Workspace
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.backtracking import Backtracking
from rlflow.search.greedy import Greedy
from rlflow.search.random import RandomSearch
from rlflow.trajectory.replay import replay

METHODS = {"greedy": Greedy, "backtracking": Backtracking, "random": RandomSearch}
SEARCHING = Budget(expansions=30)
SHORT_EPISODES = {"random": {"episode_steps": 5}}
"""Of hundreds of rules most make a graph larger: a long random walk seldom comes by a better one."""


def make(method, library, cost_model=None, **settings):
    return METHODS[method](library, CountingRewriter(library.rules), cost_model or AnalyticCost(), **settings)


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


def test_backtracking_crosses_a_plateau_that_stops_greedy(shipped, tiny):
    """With the declared linear rules a division must become a product, which saves nothing, before it can go into the
    weight; the enumerated ones take it there at once."""
    linear = shipped.select([rule.id for rule in shipped.rules if rule.family == "linear"])
    optimum = AnalyticCost().runtime_ms(from_onnx(zoo.optimum("tiny_scale")))
    graph = tiny("tiny_scale")
    assert make("greedy", linear).optimise(graph, SEARCHING).best_ms > 1.1 * optimum
    assert make("backtracking", linear).optimise(graph, SEARCHING).best_ms == pytest.approx(optimum, rel=1e-12)


def test_alpha_lets_backtracking_through_a_temporary_loss(detour):
    """The detour costs 7 % more half way (checked), so alpha = 1.05 must stop where greedy does and 1.1 must not."""
    model = AnalyticCost(AnalyticConfig(gflops_per_s=100, gbytes_per_s=40, launch_us=2.0))

    def best(method, **settings):
        return make(method, detour.library, model, **settings).optimise(detour.graph, SEARCHING)

    found = best("backtracking", alpha=1.1)
    worst = max(step.runtime_ms for step in found.trajectory.steps) / found.start_ms
    assert 1.05 < worst < 1.1
    assert len(found.trajectory.steps) == 2
    assert found.best_ms < 0.95 * found.start_ms
    for stopped in (best("greedy"), best("backtracking", alpha=1.05), best("backtracking", alpha=1.0)):
        assert stopped.best is detour.graph
        assert stopped.trajectory.steps == ()
        assert stopped.improvement_percent == 0


@pytest.mark.parametrize("method", METHODS)
def test_interactions_are_the_rewrites_carried_out(shipped, bert, method):
    search = make(method, shipped)
    result = search.optimise(bert, Budget(expansions=5))
    assert result.interactions == search.rewriter.applied > 0


def test_expansions_are_counted_as_they_are_defined(shipped, bert):
    """Random: rewrites. Greedy and backtracking: graphs whose neighbours are all looked at."""
    neighbours = sum(map(len, Rewriter(shipped.rules).matches(bert)))
    assert make("random", shipped).optimise(bert, Budget(expansions=7)).interactions == 7
    for method in ("greedy", "backtracking"):
        assert make(method, shipped).optimise(bert, Budget(expansions=1)).interactions == neighbours
        assert make(method, shipped).optimise(bert, Budget(expansions=2)).interactions > neighbours
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
    """By a clock on which each graph takes 10 ms, all neighbours of this one take over four times the budget."""
    assert sum(map(len, Rewriter(shipped.rules).matches(bert))) > 40
    cost_model = CountedCost()
    monkeypatch.setattr(Workspace, "elapsed_s", property(lambda workspace: 0.01 * cost_model.priced))
    result = make(method, shipped, cost_model).optimise(bert, Budget(time_s=0.1))
    assert 0.1 <= result.wall_time_s < 0.12
    assert 1 < result.interactions < 12


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_result(shipped, bert, method):
    first, second = (make(method, shipped).optimise(bert, Budget(expansions=15)) for _ in range(2))
    assert first.trajectory == second.trajectory
    assert structural_hash(first.best) == structural_hash(second.best)
    assert first.interactions == second.interactions


def test_random_search_is_seeded(shipped, bert):
    """Different seeds go different ways, of which two may have the same best part."""
    found = {
        make("random", shipped, seed=seed).optimise(bert, Budget(expansions=40)).trajectory.steps for seed in range(4)
    }
    assert len(found) >= 3


class Watched(AnalyticCost):
    """Remembers every price that it was asked for."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def runtime_ms(self, graph):
        self.asked.append(super().runtime_ms(graph))
        return self.asked[-1]


@pytest.mark.parametrize("method", METHODS)
def test_the_best_graph_is_returned_not_the_last(shipped, bert, method):
    """Of all graphs that were priced; some that were priced after it are dearer."""
    model = Watched()
    result = make(method, shipped, model, **SHORT_EPISODES.get(method, {})).optimise(bert, Budget(expansions=100))
    assert result.best_ms == min(model.asked)
    assert result.start_ms == model.asked[0] > result.best_ms
    assert max(model.asked[model.asked.index(result.best_ms) :]) > result.best_ms


@pytest.mark.parametrize("method", METHODS)
def test_the_trajectory_leads_to_the_best_graph(shipped, bert, method):
    result = make(method, shipped, **SHORT_EPISODES.get(method, {})).optimise(bert, Budget(expansions=100))
    steps = result.trajectory.steps
    *_, last = replay(bert, result.trajectory, Rewriter(shipped.rules))
    assert structural_hash(last) == structural_hash(result.best) == steps[-1].hash
    assert steps[-1].runtime_ms == result.best_ms
    assert sum(s.reward for s in steps) == pytest.approx(result.improvement_percent, rel=1e-9)
    assert result.trajectory.library == shipped.hash
    assert result.trajectory.cost_model == "analytic"


def test_greedy_ends_at_a_fixpoint(shipped, bert):
    result = make("greedy", shipped).optimise(bert, Budget())
    again = make("greedy", shipped).optimise(result.best, Budget())
    assert again.trajectory.steps == ()
    runtimes = [result.start_ms, *(s.runtime_ms for s in result.trajectory.steps)]
    assert runtimes == sorted(runtimes, reverse=True)
    assert len(runtimes) > 3


def test_random_search_starts_again_after_an_episode(shipped, bert):
    """Episodes of 3 rewrites: no way to the best graph is longer, though 60 rewrites were made."""
    result = make("random", shipped, episode_steps=3).optimise(bert, Budget(expansions=60))
    assert 1 <= len(result.trajectory.steps) <= 3


@pytest.mark.parametrize("method", METHODS)
def test_nothing_to_rewrite_returns_the_graph(shipped, bert, method):
    nothing = shipped.select([])
    result = make(method, nothing).optimise(bert, Budget(expansions=5))
    assert result.best is bert
    assert (result.interactions, result.improvement_percent) == (0, 0.0)


def test_random_search_without_a_budget_is_refused(shipped, bert):
    with pytest.raises(InputError, match="random search needs a budget"):
        make("random", shipped).optimise(bert, Budget())


@pytest.mark.parametrize("method", METHODS)
def test_progress_is_a_fraction_that_grows(shipped, bert, method):
    seen = []
    make(method, shipped).optimise(bert, Budget(expansions=20), lambda fraction, text: seen.append((fraction, text)))
    fractions = [fraction for fraction, _ in seen]
    assert fractions == sorted(fractions)
    assert 0 < fractions[0] <= fractions[-1] <= 1
    assert all("ms" in text for _, text in seen)


def test_the_queue_is_bounded(shipped, bert):
    """A queue of 5 gives another (no better) search than an unbounded one, but still a descent."""
    free = make("backtracking", shipped).optimise(bert, Budget(expansions=12))
    bounded = make("backtracking", shipped, queue_limit=5).optimise(bert, Budget(expansions=12))
    assert free.best_ms <= bounded.best_ms * 1.001
    assert bounded.best_ms < bounded.start_ms
