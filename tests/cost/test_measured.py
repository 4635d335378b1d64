"""Measured cost: priced once, frozen, independent of how a graph was reached."""

import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.cost_graphs import gelu_between_products, graph, weight
from support.prices import drawn_prices
from support.searches import make
from support.walks import REWRITER

from rlflow import zoo
from rlflow.cost import pricing
from rlflow.cost.base import CostContext
from rlflow.cost.measured import MeasuredCost, empty_price_list
from rlflow.cost.models import COST_MODELS
from rlflow.cost.price_list import Price, PriceList, read
from rlflow.cost.pricing import PricingConfig
from rlflow.cost.regions import partition, updated
from rlflow.errors import PriceError, RLFlowError
from rlflow.ir.node import Node, Ref
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.session import SETTINGS

FAST = PricingConfig(sessions=2, turns=1, eviction_bytes=1_000_000, slow_pace=math.inf)


@pytest.fixture
def linear():
    return graph(
        [("MatMul", "x w", "u"), ("Add", "u c", "y")],
        {"x": (3, 4)},
        {"y": (3, 5)},
        {"w": weight(4, 5), "c": weight(5)},
    )


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_missing_price_is_taken_once_and_kept(linear, setting):
    prices = empty_price_list(1)
    model = MeasuredCost(setting, prices, FAST)
    cost = model.cost(linear)
    # as written, product and sum run one after the other; deployed, they are one Gemm
    assert len(prices.prices) == {"as_written": 2, "deployed": 1}[setting]
    assert cost.runtime_ms == pytest.approx(sum(p.ms for p in prices.prices.values()), rel=1e-12)
    assert cost.launches == 2
    taken = dict(prices.prices)
    assert MeasuredCost(setting, prices, FAST).cost(linear) == cost
    assert prices.prices == taken


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_frozen_list_refuses_what_it_does_not_know(linear, setting):
    with pytest.raises(PriceError, match=rf"no {setting} price for MatMul float32\[3, 5\].*measure it there, or"):
        MeasuredCost(setting, empty_price_list(1), None).runtime_ms(linear)


def test_a_frozen_list_needs_no_runtime(linear, monkeypatch):
    prices = empty_price_list(1)
    cost = MeasuredCost("deployed", prices, FAST).cost(linear)

    def refuse(*arguments, **settings):
        raise AssertionError("a frozen price list was timed again")

    monkeypatch.setattr(pricing, "time_batch", refuse)
    assert MeasuredCost("deployed", prices, None).cost(linear) == cost


def test_settings_have_prices_of_their_own(linear):
    prices = empty_price_list(1)
    for setting in SETTINGS:
        MeasuredCost(setting, prices, FAST).runtime_ms(linear)
    assert {key.split("/")[0] for key in prices.prices} == set(SETTINGS)


def test_views_cost_one_launch_whatever_their_size_and_kind():
    """Alone they would be charged for copying their operand to the model's output: 4 MB against 4 bytes here."""
    large = graph([("Relu", "x", "r"), ("Flatten", "r", "y", {"axis": 1})], {"x": (2, 512, 1024)}, {"y": (2, 2**19)})
    small = graph([("Relu", "x", "r"), ("Identity", "r", "y")], {"x": (2, 2)}, {"y": (2, 2)})
    for setting in SETTINGS:
        prices = empty_price_list(1)
        model = MeasuredCost(setting, prices, FAST)
        model.runtime_ms(large)
        model.runtime_ms(small)
        views = [p for p in prices.prices.values() if "view" in p.description]
        assert len(views) == 1
        assert len(prices.prices) == 3
        relu = max(p.ms for p in prices.prices.values())  # reads and writes 4 MB
        assert views[0].ms < relu / 3


def test_the_first_timing_sets_the_pace_of_a_list(linear):
    prices = empty_price_list(1)
    assert prices.probe_ms is None
    MeasuredCost("deployed", prices, FAST).runtime_ms(linear)
    assert prices.probe_ms > 0


def test_what_several_graphs_lack_is_measured_together_and_once(bert, drawn_timings):
    """Two depths share all their layers; the second call finds everything."""
    graphs = [bert(layers=1), bert(layers=2), bert(layers=3)]
    model = MeasuredCost("deployed", empty_price_list(1), PricingConfig(size=4))
    assert model.measure(graphs) == 0
    distinct = len(model.price_list.prices)
    assert len(drawn_timings.batches) == math.ceil(distinct / 4)
    assert sum(map(len, drawn_timings.batches)) == distinct - 1  # a view is no model to be timed
    assert model.measuring.prices == distinct
    taken = len(drawn_timings.batches)
    assert model.measure(graphs) == 0
    one_by_one = MeasuredCost("deployed", model.price_list, None)
    assert [model.runtime_ms(g) for g in graphs] == [one_by_one.runtime_ms(g) for g in graphs]
    assert len(drawn_timings.batches) == taken


def test_all_that_a_graph_lacks_is_measured_together(bert, drawn_timings):
    model = MeasuredCost("deployed", empty_price_list(1), PricingConfig(size=1000))
    model.runtime_ms(bert())
    assert [len(batch) for batch in drawn_timings.batches] == [len(model.price_list.prices) - 1]


def test_after_a_rewrite_only_what_is_new_is_looked_for(bert, shipped, drawn_timings):
    rewriter, model = Rewriter(shipped.rules), MeasuredCost("deployed", empty_price_list(1), PricingConfig())
    g = bert()
    model.runtime_ms(g)
    before = len(drawn_timings.batches)
    children = [rewriter.apply(g, match) for found in rewriter.matches(g) for match in found[:1]]
    assert model.measure(children) == 0
    assert len(drawn_timings.batches) > before
    fresh = MeasuredCost("deployed", model.price_list, None)
    assert [model.runtime_ms(c) for c in children] == [fresh.runtime_ms(c) for c in children]


def test_a_search_measures_as_often_as_it_looks_at_states(bert, shipped, drawn_timings):
    """From an empty list; and with the list that it leaves, one that measures nothing takes the same way."""
    filled = MeasuredCost("deployed", empty_price_list(1), PricingConfig(size=1000))
    measuring = make("greedy", shipped, filled).optimise(bert(), Budget(expansions=4))
    assert measuring.expansions == 4
    assert len(drawn_timings.batches) <= 1 + 2 * measuring.expansions  # few states are looked at in two parts
    assert len(filled.price_list.prices) > 5 * len(drawn_timings.batches)
    frozen = MeasuredCost("deployed", filled.price_list, None)
    again = make("greedy", shipped, frozen).optimise(bert(), Budget(expansions=4))
    assert (again.trajectory, again.best_ms) == (measuring.trajectory, measuring.best_ms)
    assert again.effort.rewrites == measuring.effort.rewrites


def test_a_frozen_list_tells_what_is_missing_and_measures_nothing(linear, drawn_timings):
    model = MeasuredCost("as_written", empty_price_list(1), None)
    assert model.measure([linear]) == 2
    assert not drawn_timings.batches


def published(prices: PriceList, folder: Path) -> CostContext:
    """What a study gives that says `cost.prices`."""
    prices.save(folder / "zoo.json.gz")
    return CostContext("as_written", published=folder / "zoo.json.gz")


def test_published_prices_of_this_machine_count_and_what_is_missing_is_measured(linear, drawn_timings, tmp_path):
    listed = empty_price_list(1)
    MeasuredCost("as_written", listed, PricingConfig()).measure([linear])
    known = dict(listed.prices)
    dropped = known.popitem()[0]
    listed.prices = {key: Price(7.0, price.description) for key, price in known.items()}
    batches = len(drawn_timings.batches)

    model = COST_MODELS.get("measured")(published(listed, tmp_path))
    assert model.runtime_ms(linear) == 7.0 + model.price_list.prices[dropped].ms
    assert len(drawn_timings.batches) == batches + 1
    assert read(tmp_path / "zoo.json.gz") == listed, "what is published is not written to"


def test_published_prices_of_another_machine_are_all_there_is(linear, drawn_timings, tmp_path, caplog):
    """Graphs cost what they cost there, by its block of channels; the one with a new node has no price."""
    listed = empty_price_list(1)
    runtime_ms = MeasuredCost("as_written", listed, PricingConfig()).runtime_ms(linear)
    batches = len(drawn_timings.batches)
    elsewhere = replace(listed, hardware="elsewhere", machine="an old laptop", block=listed.block + 1)
    context = published(elsewhere, tmp_path)

    model = COST_MODELS.get("measured")(context)
    assert "has prices of another machine: an old laptop. None is measured here" in caplog.text
    assert model.runtime_ms(linear) == runtime_ms
    deployed = COST_MODELS.get("measured")(replace(context, setting="deployed"))
    assert deployed.reordering.config.block == elsewhere.block
    larger = graph([("MatMul", "x w", "y")], {"x": (3, 4)}, {"y": (3, 9)}, {"w": weight(4, 9)})
    with pytest.raises(PriceError, match=r"no as_written price for MatMul .* on an old laptop, .* with `predicted`"):
        model.runtime_ms(larger)
    assert len(drawn_timings.batches) == batches


def test_patience_with_a_slow_machine_ends_and_says_so(linear, drawn_timings):
    model = MeasuredCost("as_written", empty_price_list(1), PricingConfig(patience_s=0.01))
    model.price_list.probe_ms = 0.5  # the probe of the drawn timings takes twice as long
    with pytest.raises(
        PriceError, match=r"2 prices cannot be measured: for 0\.01 s .*over 1\.2 times slower.*try again"
    ):
        model.runtime_ms(linear)
    assert not model.price_list.prices


@pytest.mark.parametrize("where", ["standalone_model", "time_batch"])
def test_a_fragment_that_cannot_run_is_estimated_and_says_so(linear, monkeypatch, caplog, where):
    def refuse(models, **settings):
        if where == "time_batch":
            return [RLFlowError("no kernel") for _ in models]
        raise RLFlowError("no kernel")

    monkeypatch.setattr(pricing, where, refuse)
    prices = empty_price_list(1)
    assert MeasuredCost("deployed", prices, FAST).runtime_ms(linear) > 0
    assert all(p.estimated and p.sigma_ms == p.ms for p in prices.prices.values())
    assert "is estimated (no kernel)" in caplog.text


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("seed", range(4))
def test_the_runtime_does_not_depend_on_the_history(bert, shipped, setting, seed):
    """Along random rewrites a model that follows them and a fresh one agree to the last bit."""
    rewriter, rng, follows = Rewriter(shipped.rules), random.Random(seed), drawn_prices(setting)
    g = bert(layer_norm="decomposed" if seed % 2 else "fused")
    runtimes = [follows.runtime_ms(g)]
    for _ in range(20):
        g = rewriter.apply(g, rng.choice(rng.choice([found for found in rewriter.matches(g) if found])))
        runtimes.append(follows.runtime_ms(g))
        assert runtimes[-1] == drawn_prices(setting).runtime_ms(g)
        assert follows.cost(g) == drawn_prices(setting).cost(g)
    assert len(set(runtimes)) > 10


def replaced(g, op, inputs, root):
    """The graph with another node in place of `root`, which stays if somebody else reads it."""
    old = g.nodes[root]
    new = Node(op, inputs, old.attributes, old.types, old.names)
    return g.replace({g.next_id: new}, {Ref(root): Ref(g.next_id)})


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_value_that_is_now_read_outside_changes_the_price(setting):
    """The nodes of the product and the Relu stay the very same, but the product's result now leaves their region."""
    nodes = [("MatMul", "x w", "u"), ("Relu", "u", "v"), ("Softmax", "v", "y"), ("Softmax", "v", "z", {"axis": 0})]
    g = graph(nodes, {"x": (3, 4)}, {"y": (3, 4), "z": (3, 4)}, {"w": weight(4, 4)})
    product, relu, *_, last = g.order
    model = drawn_prices(setting)
    before = model.runtime_ms(g)
    child = replaced(g, "Softmax", (Ref(product),), last)
    assert all(child.nodes[i] is g.nodes[i] for i in (product, relu))
    assert model.runtime_ms(child) == drawn_prices(setting).runtime_ms(child)
    assert (model.runtime_ms(child) != before) == (setting == "deployed"), "as written, nodes are priced one by one"


def test_a_change_deep_inside_a_region_reaches_its_border():
    """A Gelu's last factor is its own; without the Erf, five nodes before it, it belongs to the product behind it."""
    g = gelu_between_products()
    erf = next(i for i in g.order if g.nodes[i].op == "Erf")
    child = replaced(g, "Tanh", g.nodes[erf].inputs, erf)
    assert child.edit is not None
    assert len(partition(g).regions) == 2
    assert len(partition(child).regions) == 1
    assert updated(partition(g), child, child.edit.change).region_of == partition(child).region_of
    model = drawn_prices()
    model.runtime_ms(g)
    assert model.runtime_ms(child) == drawn_prices().runtime_ms(child)


def test_two_ways_to_one_graph_have_one_price(bert, shipped):
    """The same two rewrites in either order: other node ids, other sharing, the same hash and the same cost."""
    rewriter, model = Rewriter(shipped.rules), drawn_prices()
    g = bert()
    index = next(i for i, r in enumerate(shipped.rules) if r.name == "residual-add-to-sum")
    first, last = rewriter.matches(g)[index][0], rewriter.matches(g)[index][-1]

    def then(match, place):
        child = rewriter.apply(g, match)
        return rewriter.apply(child, rewriter.matches(child)[index][place])

    one, other = then(first, -1), then(last, 0)
    assert structural_hash(one) == structural_hash(other)
    assert one.order != other.order
    assert model.cost(one) == model.cost(other)
    assert model.runtime_ms(one) != model.runtime_ms(g)


def test_equal_layers_cost_the_same(bert):
    """Two layers more cost the same each time, as equal regions share one price; measured apart they would differ."""
    model = MeasuredCost("deployed", empty_price_list(1), FAST)
    two, four, six = (model.runtime_ms(bert(layers=n)) for n in (2, 4, 6))
    assert six - four == pytest.approx(four - two, rel=1e-9)
    assert four > two


def test_an_output_that_is_given_away_is_priced_again():
    """A Split of which an output of the graph was taken is another fragment, although no operand has changed."""
    g = graph(
        [("MatMul", "x v", "a"), ("MatMul", "x w", "b"), ("Concat", "a b", "c", {"axis": 1}), ("Split", "c s", "p q")],
        {"x": (4, 8)},
        {"p": (4, 2), "q": (4, 3)},
        {"v": weight(8, 2), "w": weight(8, 3), "s": np.array([2, 3])},
    )
    places = {g.nodes[i].names[0]: i for i in g.order}
    model = drawn_prices()
    before = model.runtime_ms(g)
    child = g.replace({}, {Ref(places["p"], 0): Ref(places["a"])})
    assert child.edit.change.touched == {places["p"], places["a"]}
    assert model.runtime_ms(child) == drawn_prices().runtime_ms(child) != before


def test_a_change_is_the_difference_of_both_prices():
    """Reorders of the blocked layout included, which a graph pays at its borders and no region does: along this walk
    those that regions would have alone change."""
    rng, cost, g = random.Random(0), drawn_prices(), from_onnx(zoo.build("conv"))
    child, alone_ms = g, set()
    for _ in range(12):
        child = REWRITER.apply(child, rng.choice(rng.choice([found for found in REWRITER.matches(child) if found])))
        difference_ms = cost.runtime_ms(child) - cost.runtime_ms(g)
        assert cost.change(g, child).ms == pytest.approx(difference_ms, rel=1e-9, abs=1e-12)
        alone_ms.add(round(cost.breakdown(child).own_reorders_ms, 9))
    assert len(alone_ms) > 1
