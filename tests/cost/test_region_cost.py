"""The price of a graph is the exact sum of its regions' prices, by whichever way the graph was reached."""

from fractions import Fraction

import numpy as np
import pytest
from support.prices import drawn_prices

from rlflow import zoo
from rlflow.cost.region_cost import RegionCost
from rlflow.cost.regions import node_by_node, partition
from rlflow.onnx_io import from_onnx
from rlflow.rules.matching.rewriter import Rewriter


class _Unit(RegionCost):
    """Prices a region at a tenth of a millisecond for each of its nodes, which no float holds exactly."""

    def region_ms(self, graph, region):
        return 0.1 * len(region)


@pytest.mark.parametrize(("setting", "cut"), [("as_written", node_by_node), ("deployed", partition)])
def test_the_price_is_the_sum_rounded_once(bert, setting, cut):
    graph = bert()
    regions = cut(graph).regions
    total = sum(Fraction(0.1 * len(region)) for region in regions)
    assert len(regions) > 10
    assert _Unit(setting).runtime_ms(graph) == float(total)


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["as_written", "deployed"])
def test_a_price_does_not_depend_on_the_rewrites_that_led_to_the_graph(shipped, setting):
    """A walk of twenty rewrites, priced step by step by one model and at its end by another."""
    rng, rewriter, graph = np.random.default_rng(0), Rewriter(shipped.rules), from_onnx(zoo.build("bert", layers=1))
    followed = drawn_prices(setting)
    prices = [followed.runtime_ms(graph)]
    for _ in range(20):
        found = [match for _, matches in rewriter.matches(graph).found() for match in matches]
        graph = rewriter.apply(graph, found[rng.integers(len(found))])
        prices.append(followed.runtime_ms(graph))
    assert len(set(prices)) > 5, "rewrites that change no price would show nothing"
    assert drawn_prices(setting).runtime_ms(graph) == prices[-1]
