"""The parts of a price: every running node is in one, and they sum to the price, whatever led to the graph."""

from collections import Counter
from math import fsum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cost_graphs import SMALL_BERT
from support.prices import DrawnTimings, drawn_prices
from support.strategies import graphs
from support.walks import REWRITER

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import LocalCostModel
from rlflow.cost.measured import MeasuredCost
from rlflow.cost.price_list import PriceList
from rlflow.cost.pricing import PricingConfig
from rlflow.cost.region_cost import RegionCost
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx

MODELS = {
    "analytic": AnalyticCost,
    "deployed": lambda: drawn_prices("deployed"),
    "as_written": lambda: drawn_prices("as_written"),
}


def check(model: LocalCostModel, graph: Graph) -> int:
    """Compare the parts of a graph with its price and its nodes; return how many have several nodes."""
    parts = list(model.parts(graph))
    assert Counter(node for part in parts for node in part.nodes) == Counter(graph.order)
    assert [part.nodes[0] for part in parts] == sorted(
        (part.nodes[0] for part in parts), key=graph.positions().__getitem__
    )
    assert all(model.part_of(graph, node) == part for part in parts for node in part.nodes)
    reorders_ms = model.breakdown(graph).reorders_ms if isinstance(model, RegionCost) else 0.0
    total_ms = fsum(part.ms for part in parts)
    assert total_ms + reorders_ms == pytest.approx(model.runtime_ms(graph), rel=1e-12, abs=1e-12)
    return sum(len(part.nodes) > 1 for part in parts)


def walked(model: LocalCostModel, graph: Graph, seed: int, steps: int) -> int:
    """Check each graph of a random walk; return how many parts of several nodes were met."""
    rng, several = np.random.default_rng(seed), check(model, graph)
    for _ in range(steps):
        found = [match for matches in REWRITER.matches(graph) for match in matches]
        if not found:
            break
        graph = REWRITER.apply(graph, found[int(rng.integers(len(found)))])
        several += check(model, graph)
    return several


@pytest.mark.parametrize("name", ["bert", "squeezenet1_1"])
@pytest.mark.parametrize("kind", MODELS)
def test_parts_sum_to_the_price_on_a_walk(kind, name):
    """Not vacuous: what is deployed has regions of several nodes, and a convolutional network has reorders."""
    graph = from_onnx(zoo.build(name, **dict(zoo.describe(name).small)))
    model = MODELS[kind]()
    assert (walked(model, graph, seed=0, steps=6) > 0) == (kind == "deployed")
    if kind == "deployed" and name == "squeezenet1_1":
        assert model.breakdown(graph).reorders_ms > 0


@given(graphs(), st.sampled_from(sorted(MODELS)), st.integers(0, 2**32 - 1))
def test_parts_sum_to_the_price_of_drawn_graphs(graph, kind, seed):
    walked(MODELS[kind](), graph, seed, steps=3)


def test_what_has_no_price_yet_is_measured_first(drawn_timings: DrawnTimings):
    graph = from_onnx(zoo.build("bert", layers=1, **SMALL_BERT))
    model = MeasuredCost("deployed", PriceList("none", "none"), PricingConfig())
    assert len(list(model.parts(graph))) > 5
    assert drawn_timings.batches
