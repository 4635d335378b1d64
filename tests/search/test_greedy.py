"""Greedy search ends where no rewrite is an improvement."""

from itertools import pairwise

import pytest
from support.prices import AsAWhole, WithNoise
from support.searches import make

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx

AGENTS_RULES = [
    "fused-323d00b14591",
    "linear-0bf8bb9e09aa",
    "linear-196c05b383ae",
    "linear-2d459d8c909e",
    "linear-7045176cc3e0",
    "linear-a6f88678957e",
    "transformer-803dbdebff41",
    "transformer-930ebb239713",
    "transformer-397fc3586713",
    "transformer-dc5992bfafd6",
]
"""The rules that the searches of a published experiment used on BERT-Base."""


def test_greedy_ends_at_a_fixpoint(shipped, bert):
    result = make("greedy", shipped).optimise(bert, Budget())
    again = make("greedy", shipped).optimise(result.best, Budget())
    assert again.trajectory.steps == ()
    runtimes = [result.start_ms, *(s.runtime_ms for s in result.trajectory.steps)]
    assert runtimes == sorted(runtimes, reverse=True)
    assert len(runtimes) > 3


@pytest.mark.slow
def test_greedy_carries_out_hardly_more_than_it_takes(shipped):
    """BERT-Base: the result of a greedy search that carries out all neighbours, one for each price."""
    graph, rules = from_onnx(zoo.build("bert", layers=12)), shipped.select(AGENTS_RULES)
    models = (AnalyticCost(), AsAWhole(AnalyticCost()))
    lazy, naive = (make("greedy", rules, model).optimise(graph, Budget()) for model in models)
    assert (lazy.trajectory, lazy.best_ms) == (naive.trajectory, naive.best_ms)
    assert 20 < len(lazy.trajectory.steps) <= lazy.effort.rewrites <= 200
    assert naive.effort.rewrites >= lazy.effort.prices_asked > 4 * 200


def test_what_may_be_noise_is_not_taken(shipped, bert):
    """Of the steps of a search to which everything counts, 2 to 6 %, the large ones remain."""
    free = make("greedy", shipped).optimise(bert, Budget())
    gains = _gains(free)
    assert min(gains) < 0.04 < max(gains)
    careful = make("greedy", shipped, WithNoise(AnalyticCost(), share=0.04)).optimise(bert, Budget())
    assert 0 < len(careful.trajectory.steps) < len(free.trajectory.steps)
    assert min(_gains(careful)) >= 0.04


@pytest.mark.parametrize("method", ["greedy", "chains", "iterated"])
def test_where_everything_may_be_noise_nothing_changes(shipped, bert, method):
    result = make(method, shipped, WithNoise(AnalyticCost(), share=1.0)).optimise(bert, Budget(expansions=20))
    assert result.trajectory.steps == ()


def test_prices_without_noise_are_searched_as_before(shipped, bert):
    plain, noiseless = (make("greedy", shipped, m) for m in (AsAWhole(AnalyticCost()), WithNoise(AnalyticCost())))
    assert plain.optimise(bert, Budget()).trajectory == noiseless.optimise(bert, Budget()).trajectory


def _gains(result):
    """The share that each step of a result saves."""
    runtimes = [result.start_ms, *(step.runtime_ms for step in result.trajectory.steps)]
    return [1 - after / before for before, after in pairwise(runtimes)]
