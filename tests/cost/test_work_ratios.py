"""Ratios of work are before over after, and 1 where there is nothing to compare."""

from collections.abc import Callable

from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.memory import peak_memory_bytes
from rlflow.cost.work_ratios import work_ratios
from rlflow.ir.graph import Graph


def test_ratios_are_before_over_after(bert: Callable[..., Graph]) -> None:
    two, one, model = bert(layers=2), bert(layers=1), AnalyticCost()
    ratios = work_ratios(model, two, one)
    assert ratios["flops_ratio"] == model.cost(two).flops / model.cost(one).flops > 1
    assert ratios["launches_ratio"] == model.cost(two).launches / model.cost(one).launches > 1
    assert ratios["peak_memory_ratio"] == peak_memory_bytes(two) / peak_memory_bytes(one)
    inverse = work_ratios(model, one, two)
    assert all(abs(ratios[name] * inverse[name] - 1) < 1e-12 for name in ratios)


def test_a_graph_against_itself_is_one(linear: Graph) -> None:
    assert set(work_ratios(AnalyticCost(), linear, linear).values()) == {1.0}
