"""One evaluator: everything is counted once, and a rewrite that was carried out is not carried out again."""

import time

import pytest
from support.prices import AsAWhole, WithNoise, drawn_prices
from support.searches import CountingRewriter

from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import Measuring
from rlflow.cost.evaluator import Evaluator

MODELS = [AnalyticCost, drawn_prices, lambda: AsAWhole(AnalyticCost())]


@pytest.fixture
def rewriter(shipped):
    return CountingRewriter(shipped.rules)


@pytest.fixture
def model(bert):
    return bert(layers=2)


def matches(rewriter, graph):
    return [match for found in rewriter.matches(graph) for match in found]


@pytest.mark.parametrize("cost_model", MODELS)
def test_every_price_is_counted_and_every_rewrite_carried_out(rewriter, model, cost_model):
    evaluator = Evaluator(rewriter, cost_model())
    start_ms = evaluator.runtime_ms(model)
    prices = [evaluator.runtime_after_ms(model, match) for match in matches(rewriter, model)]
    effort = evaluator.effort
    assert start_ms not in (min(prices), max(prices))
    assert effort.prices_asked == 1 + len(prices)
    assert effort.rewrites == rewriter.applied > 0
    assert effort.pricing_s > 0 < effort.rewriting_s
    assert (effort.prices_measured, effort.measuring_s) == (0, 0.0)


@pytest.mark.parametrize("cost_model", MODELS)
def test_a_price_that_is_asked_again_costs_no_rewrite(rewriter, model, cost_model):
    evaluator, found = Evaluator(rewriter, cost_model()), matches(rewriter, model)
    first = [evaluator.runtime_after_ms(model, match) for match in found]
    carried_out = rewriter.applied
    assert [evaluator.runtime_after_ms(model, match) for match in found] == first
    assert rewriter.applied == carried_out
    assert evaluator.effort.prices_asked == 2 * len(found)


def test_a_rewrite_that_was_carried_out_to_be_priced_is_there_to_be_taken(rewriter, model):
    evaluator, match = Evaluator(rewriter, AsAWhole(AnalyticCost())), matches(rewriter, model)[0]
    price = evaluator.runtime_after_ms(model, match)
    child = evaluator.rewritten(model, match)
    assert evaluator.confirmed_ms(child) == price
    assert (rewriter.applied, evaluator.effort.prices_asked) == (1, 1)
    evaluator.rewritten(model, match)
    assert rewriter.applied == 2


def test_local_costs_need_fewer_rewrites_than_others(rewriter, model):
    """Two layers are alike, so half of the rewrites is the most that two local models can need."""
    carried_out = []
    for cost_model in (AsAWhole(AnalyticCost()), AnalyticCost()):
        evaluator = Evaluator(rewriter, cost_model)
        for match in matches(rewriter, model):
            evaluator.runtime_after_ms(model, match)
        carried_out.append(evaluator.effort.rewrites)
    assert carried_out[0] == len(matches(rewriter, model))
    assert 0 < carried_out[1] <= 0.6 * carried_out[0]


class Doubled(AnalyticCost):
    """A model of somebody who knows nothing of local prices: twice those that it inherits."""

    def runtime_ms(self, graph):
        return 2 * super().runtime_ms(graph)


def test_a_model_that_overrides_the_price_alone_is_asked_about_whole_graphs(rewriter, model):
    doubled, plain = Evaluator(rewriter, Doubled()), Evaluator(rewriter, AnalyticCost())
    for match in matches(rewriter, model)[:20]:
        assert doubled.runtime_after_ms(model, match) == 2 * plain.runtime_after_ms(model, match)
    assert doubled.effort.rewrites == 20


class Slow(AnalyticCost):
    """Says of each price that it was measured."""

    def __init__(self):
        super().__init__()
        self.measuring = Measuring()

    def runtime_ms(self, graph):
        started = time.perf_counter()
        time.sleep(0.005)
        spent = self.measuring.seconds + time.perf_counter() - started
        self.measuring = Measuring(self.measuring.prices + 1, spent)
        return super().runtime_ms(graph)


def test_measuring_is_told_apart_from_pricing_and_rewriting(rewriter, model):
    started = time.perf_counter()
    evaluator = Evaluator(rewriter, Slow())
    for match in matches(rewriter, model)[:10]:
        evaluator.runtime_after_ms(model, match)
    wall_time_s, effort = time.perf_counter() - started, evaluator.effort
    assert effort.prices_measured == 10
    assert effort.measuring_s >= 0.05
    assert effort.measuring_s + effort.pricing_s + effort.rewriting_s <= wall_time_s


def test_to_ask_what_counts_carries_a_rewrite_out_at_most_once(rewriter, model):
    """It must be carried out to be taken, if not to be priced."""
    evaluator, match = Evaluator(rewriter, WithNoise(AnalyticCost(), share=0.5)), matches(rewriter, model)[0]
    least_ms = evaluator.least_change_ms(model, match)
    assert least_ms == evaluator.least_change_ms(model, match) == 0.5 * AnalyticCost().runtime_ms(model)
    evaluator.rewritten(model, match)
    assert rewriter.applied == 1


def test_with_a_model_that_tells_no_noise_every_change_counts(rewriter, model):
    evaluator, match = Evaluator(rewriter, AnalyticCost()), matches(rewriter, model)[0]
    assert evaluator.least_change_ms(model, match) == 0.0
