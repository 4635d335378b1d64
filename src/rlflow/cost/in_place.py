"""The time that each region of a graph takes inside the graph, as ONNX Runtime fuses and runs the whole of it.

    placed = profiled(graph, ProfileConfig()).placed(graph, partition(graph))
    placed.regions[(4, 5)].us, placed.regions[(4, 5)].kernels       # 812.0, ("MatMul",)

A region that is timed alone is not what runs: its weights are colder or warmer, and ONNX Runtime may fuse it otherwise.
So the whole graph is profiled, and each kernel's time goes to the region whose nodes it computes (`cost/kernels.py`).

Invariant: the times of all regions, of the reorders and of what belongs to no region add up to the model's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rlflow.cost.kernels import PlacedKernel, kernels_of
from rlflow.cost.regions import VIEWS, Partition, Region, as_run
from rlflow.ir.graph import Graph
from rlflow.runtime.inputs import draw_inputs, symbolic_dimensions
from rlflow.runtime.profile import ProfileConfig, profile


@dataclass
class PlacedRegion:
    """Microseconds of a region, the kernels that compute it, and how much of the time others share with it."""

    us: float = 0.0
    kernels: Counter[str] = field(default_factory=Counter)
    shared_us: float = 0.0


@dataclass(frozen=True)
class Placed:
    """The regions of a graph with their times, what reorders and kernels of no region take, and the whole model
    with its standard error."""

    regions: Mapping[Region, PlacedRegion]
    reorders_us: float
    elsewhere_us: float
    model_us: float
    sigma_us: float

    @property
    def shared_us(self) -> float:
        """Microseconds of kernels that compute nodes of several regions: the borders are others there."""
        return sum(region.shared_us for region in self.regions.values())


@dataclass(frozen=True)
class Profiled:
    """A graph's kernels with the microseconds of each, and the whole model's with their standard error."""

    kernels: Sequence[tuple[PlacedKernel, float]]
    model_us: float
    sigma_us: float

    def placed(self, graph: Graph, cut: Partition) -> Placed:
        """Give each region of the graph its kernels; one that computes nodes of several goes to that of its last."""
        regions = {region: PlacedRegion() for region in cut.regions}
        reorders_us = elsewhere_us = 0.0
        for kernel, us in self.kernels:
            homes = regions_of_kernel(graph, cut, kernel)
            if kernel.is_reorder:
                reorders_us += us
            elif not homes:
                elsewhere_us += us
            else:
                home = regions[homes[0]]
                home.us += us
                home.kernels[kernel.operator] += 1
                home.shared_us += us * (len(homes) > 1)
        return Placed(regions, reorders_us, elsewhere_us, self.model_us, self.sigma_us)


def profiled(
    graph: Graph,
    config: ProfileConfig,
    dimensions: Mapping[str, int] | None = None,
    seed: int = 0,
) -> Profiled:
    """Run a graph as ONNX Runtime fuses it. `dimensions` gives symbolic dimensions their sizes.

    Raises `RLFlowError` when ONNX Runtime refuses the model, or stops.
    """
    kernels, fused = kernels_of(graph)
    own = set(symbolic_dimensions(fused.model))
    sizes = {name: size for name, size in (dimensions or {}).items() if name in own}
    times = profile(fused, draw_inputs(fused.model, np.random.default_rng(seed), sizes), config)
    return Profiled(list(zip(kernels, map(float, times.kernel_us), strict=True)), times.model_us, times.sigma_us)


def regions_of_kernel(graph: Graph, cut: Partition, kernel: PlacedKernel) -> list[Region]:
    """Return the regions whose nodes a kernel computes, that of its last node first; if of no other, of those
    of mere views and of conversions that do not run by themselves."""
    regions = list(dict.fromkeys(cut.region_of[i] for i in reversed(kernel.nodes) if i in cut.region_of))
    running = [r for r in regions if as_run(graph, r) and not all(graph.nodes[i].op in VIEWS for i in r)]
    return running or regions[:1]
