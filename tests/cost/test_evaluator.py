"""One evaluator: everything is counted once, and a rewrite that was carried out is not carried out again."""

import math
import time

import pytest
from support.prices import AsAWhole, WithNoise, drawn_prices
from support.searches import CountingRewriter

from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import Measuring
from rlflow.cost.effort import Effort, Tally
from rlflow.cost.evaluator import Evaluator
from rlflow.cost.measured import MeasuredCost, empty_price_list
from rlflow.cost.pricing import PricingConfig

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


def test_evaluators_of_one_tally_count_together_and_remember_apart(rewriter, model):
    """The second prices the same rewrite again, which takes a rewrite of its own."""
    whole, match = Tally(), matches(rewriter, model)[0]
    whole.count(Effort(rewrites=5, prices_asked=7))
    for evaluator in (Evaluator(rewriter, AsAWhole(AnalyticCost()), whole) for _ in range(2)):
        evaluator.runtime_after_ms(model, match)
        assert evaluator.effort == whole.effort
    assert (whole.effort.rewrites, whole.effort.prices_asked) == (5 + 2, 7 + 2)


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


def asked_one_by_one(evaluator, graph, found):
    return [evaluator.runtime_after_ms(graph, match) for match in found]


def asked_of_foreseen(evaluator, graph, found):
    places = enumerate(found)
    asked = [(place, evaluator.runtime_after_ms(graph, match)) for place, match in evaluator.foreseen(graph, places)]
    assert [place for place, _ in asked] == list(range(len(found)))
    return [price for _, price in asked]


@pytest.mark.parametrize("cost_model", MODELS)
def test_what_is_foreseen_has_the_same_prices_and_takes_the_same_rewrites(rewriter, model, cost_model, monkeypatch):
    """Looked at in several parts, none of which is all that must be carried out."""
    monkeypatch.setattr("rlflow.cost.evaluator._MAX_KEPT", 7)
    found, results = matches(rewriter, model), []
    for ask in (asked_one_by_one, asked_of_foreseen):
        evaluator = Evaluator(rewriter, cost_model())
        results.append((evaluator.runtime_ms(model), ask(evaluator, model, found), evaluator.effort.rewrites))
    assert results[0] == results[1]
    assert results[0][-1] > 14


def test_what_is_foreseen_is_measured_together(rewriter, model, drawn_timings):
    """One by one, every rewrite that brings something new measures for itself."""
    found, taken, prices = matches(rewriter, model), [], []
    for ask in (asked_one_by_one, asked_of_foreseen):
        drawn_timings.batches.clear()
        cost_model = MeasuredCost("deployed", empty_price_list(1), PricingConfig(size=1000))
        evaluator = Evaluator(rewriter, cost_model)
        evaluator.runtime_ms(model)
        prices.append(ask(evaluator, model, found))
        taken.append((len(drawn_timings.batches), cost_model.price_list, evaluator.effort.prices_measured))
    assert prices[0] == prices[1]
    assert taken[0][1:] == taken[1][1:]
    assert taken[0][0] > 20
    ahead = math.ceil(evaluator.effort.rewrites / 64)
    assert taken[1][0] <= 1 + ahead


def test_a_rewrite_that_is_taken_among_foreseen_ones_is_not_carried_out_again(rewriter, model, drawn_timings):
    evaluator = Evaluator(rewriter, MeasuredCost("deployed", empty_price_list(1), PricingConfig()))
    for place, match in evaluator.foreseen(model, enumerate(matches(rewriter, model)[:5])):
        price = evaluator.runtime_after_ms(model, match)
        assert place or evaluator.confirmed_ms(evaluator.rewritten(model, match)) == price
    assert rewriter.applied == evaluator.effort.rewrites <= 5


def test_after_the_deadline_nothing_is_measured_beforehand(rewriter, model, drawn_timings):
    evaluator = Evaluator(rewriter, MeasuredCost("deployed", empty_price_list(1), PricingConfig()))
    evaluator.runtime_ms(model)
    taken = len(drawn_timings.batches)
    places = enumerate(matches(rewriter, model))
    next(evaluator.foreseen(model, places, deadline=time.perf_counter()))
    assert len(drawn_timings.batches) == taken


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
