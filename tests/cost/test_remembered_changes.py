"""Remembered prices of rewrites are those of the graphs after them, to the bit."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cost_graphs import layer_scaled
from support.drawn_cnns import networks
from support.prices import drawn_prices
from support.strategies import graphs
from support.walks import REWRITER
from support.zoo_names import SMALL

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostContext, LocalCostModel
from rlflow.cost.models import COST_MODELS
from rlflow.cost.remembered_changes import RememberedChanges
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.rules.matching.rewriter import Rewriter

MODELS = {
    "analytic": AnalyticCost,
    "deployed": lambda: drawn_prices("deployed"),
    "as_written": lambda: drawn_prices("as_written"),
}
FEW = 400  # rewrites of one graph; of those that have more, as many are drawn


class Walk:
    """A random walk on which all rewrites of every graph are priced, both ways; `mispriced` are rules of those that
    differ in a bit.
    """

    def __init__(self, cost_model: LocalCostModel, truth: LocalCostModel) -> None:
        self.changes = RememberedChanges(cost_model, REWRITER)
        self.truth = truth
        self.prices = self.carried_out = 0
        self.mispriced: list[str] = []

    def carry_out(self, graph, match, price):
        self.carried_out += 1
        return price(REWRITER.apply(graph, match))

    def gone(self, graph: Graph, steps: int, rng: random.Random, every: int = 1) -> Walk:
        """Take steps, and price at every so many; the graphs are kept, as a search keeps them. Returns the walk."""
        visited = [graph]
        for step in range(steps):
            found = [match for matches in REWRITER.matches(graph) for match in matches]
            if not found:
                break
            for match in (found if len(found) <= FEW else rng.sample(found, FEW)) if step % every == 0 else ():
                price = self.changes.runtime_after_ms(graph, match, self.carry_out)
                if price != self.truth.runtime_ms(REWRITER.apply(graph, match)):
                    self.mispriced.append(match.rule.name)
                self.prices += 1
            graph = REWRITER.apply(graph, rng.choice(found))
            visited.append(graph)
        return self


def walked(name: str, kind: str, *, walks: int, steps: int) -> Walk:
    graph = from_onnx(zoo.build(name, **SMALL[name]))
    walk = Walk(MODELS[kind](), MODELS[kind]())
    for seed in range(walks):
        walk.gone(graph, steps, random.Random(seed))
    return walk


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", ["bert", "tiny_merge", "tiny_scale", "squeezenet1_1"])
def test_remembered_prices_are_those_of_the_graphs(name, kind):
    """Not vacuous: many prices came from memory, since fewer rewrites were carried out than priced."""
    walk = walked(name, kind, walks=2, steps=5)
    assert not walk.mispriced
    assert 0 < walk.carried_out < 0.7 * walk.prices


@pytest.mark.parametrize("kind", MODELS)
def test_remembered_prices_are_those_of_graphs_whose_columns_are_scaled(kind):
    """A constant that varies along the last axis is cut off from the product before it, another one is not."""
    walk = Walk(MODELS[kind](), MODELS[kind]()).gone(layer_scaled(3), 6, random.Random(0))
    assert not walk.mispriced
    assert 0 < walk.carried_out < walk.prices


class LookingRewriter(Rewriter):
    """A rewriter that counts the matches whose surroundings were looked at."""

    looked = 0

    def edit(self, graph, match):
        self.looked += 1
        return super().edit(graph, match)


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_known_is_handed_on_past_graphs_that_are_hardly_looked_at(kind):
    """On a walk of six rewrites all are priced at both ends, and one on each graph between. Not vacuous: of those at
    the end, few are looked at again.
    """
    graph, rng = from_onnx(zoo.build("bert", **{**SMALL["bert"], "layers": 8})), random.Random(0)
    rewriter = LookingRewriter(REWRITER.rules)
    truth, changes = MODELS[kind](), RememberedChanges(MODELS[kind](), rewriter)

    def carry_out(graph, match, price):
        return price(REWRITER.apply(graph, match))

    graphs = [graph]
    for step in range(7):
        found = [match for matches in rewriter.matches(graphs[-1]) for match in matches]
        rewriter.looked = 0
        for match in found if step in (0, 6) else found[:1]:
            price = changes.runtime_after_ms(graphs[-1], match, carry_out)
            if step or match in found[::10]:
                assert price == truth.runtime_ms(REWRITER.apply(graphs[-1], match))
        assert (rewriter.looked == len(found)) if step == 0 else (rewriter.looked < 0.7 * len(found))
        graphs.append(rewriter.apply(graphs[-1], rng.choice(found)))


@pytest.mark.parametrize("model", [AnalyticCost, lambda: COST_MODELS.get("predicted")(CostContext())])
def test_graphs_of_which_nothing_is_priced_do_not_show(model):
    """As between steps that rewrite all places that are alike; not vacuous, since some prices are remembered."""
    walk = Walk(model(), model()).gone(from_onnx(zoo.build("bert", **SMALL["bert"])), 7, random.Random(0), every=3)
    assert walk.mispriced == []
    assert 0 < walk.carried_out < walk.prices


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", SMALL)
def test_remembered_prices_are_those_of_the_graphs_in_the_whole_zoo(name, kind):
    walk = walked(name, kind, walks=1, steps=6)
    assert not walk.mispriced
    assert walk.carried_out <= walk.prices


@given(graphs(), st.sampled_from(sorted(MODELS)), st.integers(0, 2**32 - 1))
def test_remembered_prices_are_those_of_drawn_graphs(graph, kind, seed):
    assert not Walk(MODELS[kind](), MODELS[kind]()).gone(graph, 3, random.Random(seed)).mispriced


@given(networks(most=6), st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_remembered_prices_are_those_of_drawn_convolutional_networks(model, seed):
    """What an edit does to the layout may reach any number of nodes beyond it."""
    walk = Walk(MODELS["deployed"](), MODELS["deployed"]())
    assert not walk.gone(from_onnx(model), 2, random.Random(seed)).mispriced


def test_matches_far_from_an_edit_are_not_looked_at_again(bert, monkeypatch):
    graph = bert(layers=4)
    model = drawn_prices()
    changes = RememberedChanges(model, REWRITER)
    looks = []
    monkeypatch.setattr(
        model, "surroundings", lambda *about: looks.append(about) or type(model).surroundings(model, *about)
    )

    def carry_out(graph, match, price):
        return price(REWRITER.apply(graph, match))

    def all_priced(graph):
        found = [match for matches in REWRITER.matches(graph) for match in matches]
        for match in found:
            changes.runtime_after_ms(graph, match, carry_out)
        return found

    first = all_priced(graph)
    assert len(looks) == len(first)
    child = REWRITER.apply(graph, first[int(np.random.default_rng(0).integers(len(first)))])
    looks.clear()
    second = all_priced(child)
    assert 0 < len(looks) < len(second) / 2
