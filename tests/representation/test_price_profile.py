"""A price profile: coefficients that are known are found again, and its unit follows the prices."""

from dataclasses import replace
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.prices import drawn_prices
from support.strategies import graphs

from rlflow import zoo
from rlflow.cost.analytic import AnalyticConfig, AnalyticCost
from rlflow.cost.base import Part
from rlflow.cost.work import NodeWork, WorkCounter
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.representation.price_profile import PriceProfile

ENDLESS = 1e30  # a rate at which the work takes no time


def build(name: str) -> Graph:
    return from_onnx(zoo.build(name, **dict(zoo.describe(name).small)))


@pytest.mark.parametrize("name", ["bert", "squeezenet1_1"])
@pytest.mark.parametrize(
    ("machine", "wanted"),
    [
        (AnalyticConfig(gflops_per_s=ENDLESS, gbytes_per_s=20.0, launch_us=2.0), (0.002, 0.0, 50.0)),
        (AnalyticConfig(gflops_per_s=100.0, gbytes_per_s=ENDLESS, launch_us=5.0), (0.005, 10.0, 0.0)),
        (AnalyticConfig(gflops_per_s=ENDLESS, gbytes_per_s=20.0, launch_us=0.0), (0.0, 0.0, 50.0)),
    ],
)
def test_the_coefficients_of_a_linear_machine_are_found_again(name, machine, wanted):
    """Where all nodes are bound by the same, a roofline is linear."""
    profile = PriceProfile.of(build(name), AnalyticCost(machine))
    found = (profile.launch_ms, profile.ms_per_gflop, profile.ms_per_gbyte)
    assert found == pytest.approx(wanted, rel=1e-6, abs=1e-9)


def test_a_node_costs_what_its_work_does():
    profile = PriceProfile(launch_ms=0.5, ms_per_gflop=2.0, ms_per_gbyte=3.0, median_ms=1.0)
    assert profile.ms(0, 0) == 0.5
    assert profile.ms(4 * 10**9, 10**9) == 0.5 + 8 + 3


def test_a_part_is_split_as_its_nodes_are_estimated():
    profile = PriceProfile(launch_ms=0.0, ms_per_gflop=1.0, ms_per_gbyte=1.0, median_ms=1.0)
    assert profile.shares_ms([NodeWork(10**9, 0), NodeWork(0, 3 * 10**9)], 8.0) == [2.0, 6.0]
    assert profile.shares_ms([NodeWork(0, 0), NodeWork(0, 0)], 8.0) == [4.0, 4.0]


@pytest.mark.parametrize("scale", [2.0**-20, 3.0, 1e6])
@pytest.mark.parametrize("setting", ["as_written", "deployed"])
def test_the_profile_follows_the_prices(setting, scale):
    """The same graph at prices that are all so many times as high."""
    graph, model = build("bert"), drawn_prices(setting)

    class Scaled:
        def parts(self, graph):
            return (Part(part.nodes, part.ms * scale) for part in model.parts(graph))

    one, other = PriceProfile.of(graph, model), PriceProfile.of(graph, Scaled())
    assert one.median_ms > 0
    assert vars(other) == pytest.approx({name: scale * value for name, value in vars(one).items()}, rel=1e-9)


def test_the_unit_is_the_median_of_the_nodes_that_cost_anything():
    """At a price for traffic alone, views are free; half of the other nodes cost less than the unit."""
    graph, counter = build("bert"), WorkCounter()
    model = AnalyticCost(AnalyticConfig(gflops_per_s=ENDLESS, gbytes_per_s=1.0, launch_us=0.0))
    moved = sorted(counter.node(graph, i).bytes_moved for i in graph.order)
    paid = [count for count in moved if count]
    assert 0 < len(paid) < len(moved)
    middle = (paid[(len(paid) - 1) // 2] + paid[len(paid) // 2]) / 2
    assert PriceProfile.of(graph, model).median_ms == pytest.approx(middle / 1e6)


class Free:
    """A cost model at which nothing costs anything."""

    def parts(self, graph):
        return (Part((node,), 0.0) for node in graph.order)


def test_a_graph_without_a_price_has_a_unit():
    assert PriceProfile.of(build("tiny_chain"), Free()) == PriceProfile(0.0, 0.0, 0.0, 1.0)
    empty = replace(build("tiny_chain"), outputs=())
    assert PriceProfile.of(empty, drawn_prices()) == PriceProfile(0.0, 0.0, 0.0, 1.0)


@given(graphs(), st.sampled_from(["as_written", "deployed"]))
def test_the_shares_of_a_part_sum_to_its_price(graph, setting):
    model, counter = drawn_prices(setting), WorkCounter()
    profile = PriceProfile.of(graph, model)
    for part in model.parts(graph):
        shares_ms = profile.shares_ms([counter.node(graph, node) for node in part.nodes], part.ms)
        assert min(shares_ms) >= 0
        assert fsum(shares_ms) == pytest.approx(part.ms)
