"""The kernels of regions beside those of the whole model."""

import numpy as np
import pytest
from studies.borders.comparison import Comparer
from support.cost_graphs import SMALL_BERT

from rlflow import zoo
from rlflow.cost.predicted.cost import PredictedCost
from rlflow.cost.predicted.price_model import load
from rlflow.cost.regions import node_by_node, partition
from rlflow.onnx_io import from_onnx


@pytest.fixture(scope="module")
def prices() -> PredictedCost:
    return PredictedCost(load())


def test_regions_that_run_as_in_the_model(prices: PredictedCost):
    """Not vacuous: cut node by node, the same model has a Gelu that no region has."""
    graph = from_onnx(zoo.build("bert", **{**SMALL_BERT, "layers": 1}))
    comparer = Comparer({}, seed=0)
    cut = comparer.compare(graph, partition(graph), prices)
    assert (cut.differences, dict(cut.missing)) == ((), {})
    apart = comparer.compare(graph, node_by_node(graph), prices)
    assert apart.missing["Gelu"] == 1
    assert 0 < apart.differing_ms < apart.price_ms


def test_a_region_that_lies_between_others_is_named_with_its_price(prices: PredictedCost):
    """Each of the two layers has a region of a product and its bias, which are one Gemm; cut, they are two kernels."""
    graph = from_onnx(zoo.build("mlp"))
    apart = Comparer({}, seed=0).compare(graph, node_by_node(graph), prices)
    assert sum(apart.missing.values()) > 0
    for region, ms, kernels in apart.differences:
        assert ms >= 0
        assert sum(kernels.values()) == 1, region
    assert np.isclose(sum(ms for _, ms, _ in apart.differences), apart.differing_ms)
