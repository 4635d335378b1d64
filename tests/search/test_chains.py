"""Chains find what greedy search is stuck before, waste nothing on layers that are alike, and end by themselves."""

import pytest
from support.searches import SEARCHING, make

from rlflow import zoo
from rlflow.cost.analytic import AnalyticConfig, AnalyticCost
from rlflow.errors import InputError
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.replay import replay

SLOW_MEMORY = AnalyticConfig(gflops_per_s=100, gbytes_per_s=40, launch_us=2.0)
"""The detour costs 7 % more half way, as the tests of backtracking check."""
NO_LAUNCHES = AnalyticConfig(launch_us=0.0)
"""What small tensors cost shows."""


def decoder(layers, **settings):
    """A decoder that reads its last token, so that much of its last layer need not be computed."""
    sizes = {"hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "memory": 8, "vocabulary": 50}
    return from_onnx(zoo.build("t5_decoder", layers=layers, head="last", **sizes, **settings))


def test_a_plateau_that_stops_greedy_is_crossed(plateau):
    optimum = AnalyticCost().runtime_ms(from_onnx(zoo.optimum("tiny_scale")))
    greedy = make("greedy", plateau.library).optimise(plateau.graph, Budget())
    assert greedy.best_ms > 1.1 * optimum, "greedy is stuck, or this shows nothing"
    found = make("chains", plateau.library).optimise(plateau.graph, Budget())
    assert found.best_ms == pytest.approx(optimum, rel=1e-12)


def test_a_first_step_may_cost_something(detour):
    model = AnalyticCost(SLOW_MEMORY)
    assert make("greedy", detour.library, model).optimise(detour.graph, Budget()).best is detour.graph
    found = make("chains", detour.library, model).optimise(detour.graph, Budget())
    first, second = found.trajectory.steps
    assert first.runtime_ms > found.start_ms > second.runtime_ms == found.best_ms


def test_chains_save_where_one_token_is_read(shipped):
    """Greedy search saves less than half of it; the way replays, and no milestone is dearer than the one before."""
    graph, model = decoder(1), AnalyticCost(NO_LAUNCHES)
    greedy = make("greedy", shipped, model).optimise(graph, Budget())
    found = make("chains", shipped, model).optimise(graph, Budget())
    assert greedy.improvement_percent < 0.5 * found.improvement_percent
    *_, last = replay(graph, found.trajectory, Rewriter(shipped.rules))
    assert AnalyticCost(NO_LAUNCHES).runtime_ms(last) == found.best_ms
    prices = [milestone.runtime_ms for milestone in found.milestones]
    assert prices == sorted(prices, reverse=True)
    assert (prices[0], prices[-1]) == (found.start_ms, found.best_ms)


def test_the_search_goes_on_from_a_state(detour):
    """In another search's workspace, whose effort and trajectory become one."""
    model = AnalyticCost(SLOW_MEMORY)
    search = make("chains", detour.library, model)
    work = search.begin(detour.graph, Budget())
    greedy = make("greedy", detour.library, model)
    found = search.improve(work, greedy.improve(work, work.start))
    assert found.path()[0] is work.start
    assert work.result(found).trajectory == search.optimise(detour.graph, Budget()).trajectory
    assert search.improve(work, found) is found, "there is no more to find"


@pytest.mark.slow
def test_layers_that_are_alike_are_tried_once(shipped):
    """Of four layers, all but the first and the last have surroundings that were met before: a layer more costs little.

    Prices are asked for each rewrite that a chain considers; greedy search's are the same for both and left out.
    """

    def asked(layers):
        graph = decoder(layers)
        chains, greedy = (make(method, shipped).optimise(graph, Budget()) for method in ("chains", "greedy"))
        return chains.effort.rewrites - greedy.effort.rewrites

    assert asked(4) - asked(3) < 0.5 * asked(1)


def test_the_budget_ends_the_search(shipped):
    graph, model = decoder(1), AnalyticCost(NO_LAUNCHES)
    whole = make("chains", shipped, model, depth=2).optimise(graph, Budget())
    short = make("chains", shipped, model, depth=2).optimise(graph, Budget(expansions=40))
    assert short.best_ms > whole.best_ms
    assert short.effort.rewrites < 0.5 * whole.effort.rewrites
    work = make("chains", shipped).begin(graph, SEARCHING)
    make("chains", shipped).improve(work, work.start)
    assert work.ledger.expansions == SEARCHING.expansions


@pytest.mark.parametrize(
    ("options", "message"),
    [({"depth": 1}, "at least 2 rewrites: depth cannot be 1"), ({"width": 0}, "at least 1 way: width cannot be 0")],
)
def test_chains_that_are_none_are_refused(shipped, options, message):
    with pytest.raises(InputError, match=message):
        make("chains", shipped, **options)
