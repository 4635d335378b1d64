"""The figures of measured regions, and the sheet that tells them to people."""

import math

import pytest
from studies.prices.region_sheet import Control, data_sheet, figures
from support.cost_graphs import graph

from rlflow.cost.region_record import GraphRecord, RegionRecord, RewriteRecord
from rlflow.ir.graph import Graph
from rlflow.runtime.timing.batches import FragmentTiming


def region(*operators: str) -> Graph:
    values = [f"v{i}" for i in range(len(operators) + 1)]
    nodes = [(op, values[i], values[i + 1]) for i, op in enumerate(operators)]
    return graph(nodes, {"v0": (2, 2)}, {values[-1]: (2, 2)})


def record(ms: float, *operators: str, sigma_ms: float = 0.0, family: str = "a") -> RegionRecord:
    return RegionRecord(region(*operators), f"s{ms}", ms, sigma_ms, 1.0, family, f"{family} 1")


RECORDS = [
    record(0.01, "Relu", sigma_ms=0.001),
    record(0.5, "Relu", "Relu", sigma_ms=0.01),
    record(0.6, "Tanh", "Relu", sigma_ms=0.03, family="b"),
]
CONTROLS = [
    Control(FragmentTiming(0.5, 0.01, 1.0), FragmentTiming(1.0, 0.02, 2.0)),
    Control(FragmentTiming(0.5, 0.01, 1.0), FragmentTiming(0.75, 0.01, 1.0)),
]


def document() -> dict:
    rewrites = [RewriteRecord(("s0.5",), ("s0.01",), 0, "rule", "a", "a 1")]
    graphs = [GraphRecord({"s0.5": 2}, 1, "original", "a", "a 1"), GraphRecord({"s0.6": 1}, 0, "original", "b", "b 1")]
    return figures(RECORDS, rewrites, graphs, CONTROLS)


def test_the_figures_in_closed_form():
    found = document()
    assert (found["regions"], found["rewrites"], found["graphs"], found["configurations"]) == (3, 1, 2, 2)
    assert found["families"]["a"] == {"regions": 2, "rewrites": 1, "graphs": 1}
    assert found["operators"] == {"Relu": 3, "Tanh": 1}, "regions that have one, not how often it occurs"
    assert found["ms_quantiles"]["50"] == 0.5


def test_the_noise_in_closed_form():
    """Of two controls one differs by the pace alone, the other by a half; each is known to 2 % of itself."""
    noise = document()["noise"]
    assert list(noise) == ["below_20us", "100us_to_1ms"]
    middle = noise["100us_to_1ms"]
    assert middle["regions"] == 2
    assert middle["sigma_percent_median"] == pytest.approx((2 + 5) / 2)
    assert middle["again_percent_median"] == pytest.approx(100 * math.log(1.5) / 2)
    assert middle["again_percent_median_without_probe"] == pytest.approx(100 * (math.log(1.5) + math.log(2)) / 2)
    assert middle["again_within_two_sigma"] == 0.5
    assert middle["cases"] == 2
    assert noise["below_20us"]["again_percent_median"] is None
    assert noise["below_20us"]["cases"] == 0


def test_the_sheet_tells_every_figure():
    context = {
        "gathered": 77,
        "left_out": {"too long": 9},
        "refused": 4,
        "pace_ms": 0.91234,
        "seconds_per_price": 0.0651,
    }
    context |= {"hardware": "a processor", "protocol": 5}
    sheet = data_sheet(document() | context)
    for told in (
        "77",
        "9 too long",
        "0.9123 ms",
        "0.065 s",
        "a processor",
        "Protocol 5",
        "Relu 3, Tanh 1",
        "| a | 2 | 1 | 1 |",
    ):
        assert told in sheet
    (row,) = (line for line in sheet.splitlines() if line.startswith("| 100us to 1ms"))
    assert row.count("|") == 10
    assert "None" not in sheet
