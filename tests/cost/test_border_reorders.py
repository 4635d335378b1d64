"""Borders do not depend on the way to a graph, and previewed changes of them are those of the graphs after the edit."""

import math
import random
from collections.abc import Mapping
from math import fsum

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cost_graphs import graph, weight
from support.drawn_cnns import networks
from support.prices import drawn_prices
from support.walks import REWRITER
from support.zoo_names import SMALL

from rlflow import zoo
from rlflow.cost.border_reorders import ReorderConfig, Reordering
from rlflow.cost.exact_sum import exact
from rlflow.cost.fragment import describe, extract
from rlflow.cost.regions import partition
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.preview import preview
from rlflow.onnx_io import from_onnx

NETWORKS = ("squeezenet1_1", "mobilenet_v2", "nasnet_a")
BLOCK = ReorderConfig(block=16)


def reorder_ms(graph: Graph, config: ReorderConfig | None = None, dimensions: Mapping[str, int] | None = None) -> float:
    """Return the milliseconds that a graph's reorders take when it is a model by itself."""
    return fsum(Reordering(config or ReorderConfig(), dimensions or {}).borders(graph).exact_ms)


def walk(start: Graph, steps: int, seed: int, *, tried: int = 20) -> tuple[int, int]:
    """Walk at random; return how many rewrites were looked at, and how many of them changed the reorders."""
    reordering, rng = Reordering(BLOCK, {}), random.Random(seed)
    looked_at = changed = 0
    current, borders = start, reordering.borders(start)
    for _ in range(steps):
        found = [match for matches in REWRITER.matches(current) for match in matches]
        for match in rng.sample(found, min(tried, len(found))):
            change = reordering.change(borders, current, preview(current, *REWRITER.edit(current, match)))
            after = reordering.borders(REWRITER.apply(current, match))
            assert exact((*borders.exact_ms, *change.exact_ms)) == after.exact_ms, match.rule.name
            looked_at, changed = looked_at + 1, changed + bool(change.exact_ms)
        if not found:
            break
        current = REWRITER.apply(current, rng.choice(found))
        followed, anew = reordering.borders(current, borders), reordering.borders(current)
        assert dict(followed.layouts) == dict(anew.layouts)
        assert dict(followed.ms) == dict(anew.ms)
        assert followed.exact_ms == anew.exact_ms
        borders = followed
    return looked_at, changed


@pytest.mark.parametrize("name", NETWORKS)
def test_previewed_and_followed_changes_are_those_of_the_graphs(name: str) -> None:
    """Not vacuous: some of the rewrites that are looked at change the reorders."""
    looked_at, changed = walk(from_onnx(zoo.build(name, **SMALL[name])), steps=3, seed=0)
    assert looked_at > 40
    assert changed > 0


@given(networks(most=6), st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_changes_of_drawn_networks_are_those_of_the_graphs(model: onnx.ModelProto, seed: int) -> None:
    walk(from_onnx(model), steps=2, seed=seed)


def test_an_image_that_leaves_the_cache_takes_longer() -> None:
    """One image of 16 channels into blocks, 0.16 MB, one of 32 out of them, 0.32 MB."""
    g = graph([("Conv", "x w", "y")], {"x": (1, 16, 50, 50)}, {"y": (1, 32, 50, 50)}, {"w": weight(32, 16, 1, 1)})
    slow = ReorderConfig(launch_us=5.0, us_per_mb=10.0, far_us_per_mb=100.0, cache_mb=0.2)
    assert reorder_ms(g, slow) == pytest.approx((2 * 5.0 + 10.0 * 0.16 + 100.0 * 0.32) / 1e3, rel=1e-12)
    assert reorder_ms(g, ReorderConfig(us_per_mb=0.0)) == pytest.approx(2e-3, rel=1e-12)
    assert reorder_ms(g, slow.at_pace(2.0)) == pytest.approx(2 * reorder_ms(g, slow), rel=1e-12)


def test_symbolic_sizes_count_as_what_they_are_priced_at() -> None:
    model = zoo.build("squeezenet1_1", **{**SMALL["squeezenet1_1"], "batch": "batch"})
    one, eight = (reorder_ms(from_onnx(model), BLOCK, {"batch": batch}) for batch in (1, 8))
    launches = len(Reordering(BLOCK, {}).reorders(from_onnx(model))) * BLOCK.launch_us / 1e3
    assert eight - launches == pytest.approx(8 * (one - launches), rel=1e-9)
    assert one == reorder_ms(from_onnx(zoo.build("squeezenet1_1", **SMALL["squeezenet1_1"])), BLOCK)


def test_a_reorder_between_parts_is_charged_once_and_never_inside_them() -> None:
    """Two convolutions and what works on either layout between them: alone each part pays, together the ends do."""
    nodes = [("Conv", "x v", "a"), ("MaxPool", "a", "b", {"kernel_shape": [1, 1]}), ("Conv", "b w", "y")]
    weights = {"v": weight(16, 16, 1, 1), "w": weight(16, 16, 1, 1)}
    g = graph(nodes, {"x": (1, 16, 4, 4)}, {"y": (1, 16, 4, 4)}, weights)
    part = graph([("MaxPool", "x", "y", {"kernel_shape": [1, 1]})], {"x": (1, 16, 4, 4)}, {"y": (1, 16, 4, 4)})
    config = ReorderConfig(launch_us=5.0, us_per_mb=49.0)
    ends_ms = 2 * (5.0 + 49.0 * 1024 / 1e6) / 1e3
    assert reorder_ms(g, config) == reorder_ms(part, config) == pytest.approx(ends_ms)
    assert reorder_ms(g, ReorderConfig(block=1)) == 0.0


def test_prices_are_those_of_regions_without_their_own_reorders_and_of_the_borders() -> None:
    g = from_onnx(zoo.build("squeezenet1_1", **SMALL["squeezenet1_1"]))
    deployed = drawn_prices()
    deployed.exact_ms(g)
    pricing = deployed._pricing(g)
    alone = [deployed.region_ms(g, region) for region in pricing.partition.regions]
    assert deployed.runtime_ms(g) == pytest.approx(fsum(alone) + reorder_ms(g), rel=1e-12)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_region_alone_has_the_reorders_of_the_model_that_is_timed(name: str) -> None:
    """Not vacuous: most regions of these networks have some."""
    g = from_onnx(zoo.build(name, **SMALL[name]))
    regions = partition(g).regions
    alone = [Reordering(BLOCK, {}).alone_ms(g, region) for region in regions]
    assert alone == [reorder_ms(extract(g, describe(g, region)), BLOCK) for region in regions]
    assert sum(ms > 0 for ms in alone) > len(regions) / 4


@pytest.mark.parametrize("setting", ["deployed", "as_written"])
def test_graphs_without_convolutions_have_the_prices_of_their_regions(setting: str) -> None:
    model = drawn_prices(setting)  # type: ignore[arg-type]
    g = from_onnx(zoo.build("bert", **SMALL["bert"]))
    regions = model._pricing(g).partition.regions
    assert model.runtime_ms(g) == math.fsum(model.region_ms(g, region) for region in regions)


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [({"block": 0}, "give the channels of a block"), ({"us_per_mb": -1.0}, "us_per_mb of a reorder cannot be -1.0")],
)
def test_numbers_that_no_machine_has_are_refused(numbers: dict[str, float], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        ReorderConfig(**numbers)  # type: ignore[arg-type]
