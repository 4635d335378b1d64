"""Prices of single nodes add up to that of a graph, where a cost model's do."""

from math import fsum

import pytest

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.egraph.prices import NodePrices
from rlflow.ir import Graph
from rlflow.onnx_io import from_onnx


class CountingCost(AnalyticCost):
    """A cost model that knows how often it was asked."""

    asked = 0

    def runtime_ms(self, graph: Graph) -> float:
        self.asked += 1
        return super().runtime_ms(graph)


@pytest.mark.parametrize("name", ["tiny_chain", "nasrnn", "loop"])
def test_prices_of_nodes_add_up(name: str) -> None:
    """Opaque nodes, left out operands and several outputs included; nodes that are alike are asked for once."""
    graph = from_onnx(zoo.build(name))
    cost = CountingCost()
    price = NodePrices(cost, graph.header)
    total = fsum(
        price(graph.nodes[i], [graph.type_of(ref) for ref in graph.nodes[i].inputs if ref is not None])
        for i in graph.order
    )
    assert total == pytest.approx(AnalyticCost().runtime_ms(graph), rel=1e-12)
    asked = cost.asked
    assert 0 < asked <= len(graph.order)
    first = graph.nodes[graph.order[0]]
    price(first, [graph.type_of(ref) for ref in first.inputs if ref is not None])
    assert cost.asked == asked
