"""Backtracking crosses what stops greedy search, and its queue is bounded."""

import pytest
from support.searches import SEARCHING, make

from rlflow import zoo
from rlflow.cost.analytic import AnalyticConfig, AnalyticCost
from rlflow.errors import InputError
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx


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


def test_the_queue_is_bounded(shipped, bert):
    """A queue of 5 gives another (no better) search than an unbounded one, but still a descent."""
    free = make("backtracking", shipped).optimise(bert, Budget(expansions=12))
    bounded = make("backtracking", shipped, queue_limit=5).optimise(bert, Budget(expansions=12))
    assert free.best_ms <= bounded.best_ms * 1.001
    assert bounded.best_ms < bounded.start_ms


def test_a_graph_is_made_when_its_turn_comes(shipped, bert):
    """Many wait for each that is made; the best is made even if the budget ends before its turn. Some rewrites are
    carried out to be priced, so that there are more of them than expansions.
    """
    found = make("backtracking", shipped).optimise(bert, Budget(expansions=12))
    assert 12 <= found.effort.rewrites < found.effort.prices_asked / 5
    assert found.best_ms == min(step.runtime_ms for step in found.trajectory.steps)
    one = make("backtracking", shipped).optimise(bert, Budget(expansions=1))
    work = make("greedy", shipped).begin(bert, Budget())
    assert len(one.trajectory.steps) == 1
    assert one.best_ms == min(option.runtime_ms for option in work.options(work.start))


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan")])
def test_an_alpha_that_is_not_positive_is_refused(shipped, alpha):
    with pytest.raises(InputError, match=r"alpha .* must be positive"):
        make("backtracking", shipped, alpha=alpha)
