"""The kernels that a model runs as, beside those that its regions run as when each is a model by itself.

    comparison = Comparer(sizes, seed=0).compare(graph, partition(graph), cost_model)
    comparison.differing_ms / comparison.price_ms       # 0.53: the share of the price that belongs to other kernels

The kernels of all regions together should be those of the model. A region with a kernel that the model has not, or has
less often, is priced as something that is not run: GPT-2 has a FastGelu where a region alone has Pow, Mul and Tanh.

Left out are views, merged with a view to the whole model, and the reorders of the blocked layout, which have a price of
their own (`cost/border_reorders.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from onnx import ModelProto

from rlflow.cost.fragment import describe, extract
from rlflow.cost.region_cost import RegionCost
from rlflow.cost.regions import VIEWS, Partition, Region
from rlflow.ir.graph import Graph
from rlflow.onnx_io import to_onnx
from rlflow.onnx_io.standalone import standalone_model
from rlflow.runtime.inputs import draw_inputs, symbolic_dimensions
from rlflow.runtime.profile import Kernel, profile

_LEFT_OUT = VIEWS | {"ReorderInput", "ReorderOutput"}

Kernels = Counter[Kernel]


class Difference(NamedTuple):
    """A region that runs as other kernels: in words, its price, and the kernels that the model has not."""

    region: str
    ms: float
    kernels: Counter[str]


@dataclass(frozen=True)
class Comparison:
    """A model's price, the differences of its regions, and the kernels of the model that no region has."""

    price_ms: float
    differences: tuple[Difference, ...]
    missing: Counter[str]

    @property
    def differing_ms(self) -> float:
        return sum(difference.ms for difference in self.differences)


@dataclass(frozen=True)
class Comparer:
    """Compares graphs at these sizes of symbolic dimensions; regions that do the same work are run once."""

    dimensions: Mapping[str, int]
    seed: int
    _known: dict[str, Kernels] = field(default_factory=dict)

    def compare(self, graph: Graph, partition: Partition, cost_model: RegionCost) -> Comparison:
        """Compare the whole of a graph with the regions of a partition.

        Raises `RLFlowError` when ONNX Runtime refuses the model or a region.
        """
        whole = self._kernels(to_onnx(graph))
        alone = {region: self._alone(graph, region) for region in partition.regions}
        together = sum(alone.values(), Kernels())
        prices_ms = {region: cost_model.region_ms(graph, region) for region in alone}

        differences, left = [], together - whole
        for region, kernels in alone.items():
            if other := kernels & left:
                left -= other
                words = describe(graph, region).description
                differences.append(Difference(words, prices_ms[region], _operators(other)))
        return Comparison(sum(prices_ms.values()), tuple(differences), _operators(whole - together))

    def _alone(self, graph: Graph, region: Region) -> Kernels:
        fragment = describe(graph, region)
        if fragment.signature not in self._known:
            self._known[fragment.signature] = self._kernels(standalone_model(extract(graph, fragment)))
        return self._known[fragment.signature]

    def _kernels(self, model: ModelProto) -> Kernels:
        """Run a model once, and count its kernels."""
        own = set(symbolic_dimensions(model))
        sizes = {name: size for name, size in self.dimensions.items() if name in own}
        (run,) = profile(model, draw_inputs(model, np.random.default_rng(self.seed), sizes))
        return Kernels(kernel for kernel, _ in run if kernel.operator not in _LEFT_OUT)


def _operators(kernels: Kernels) -> Counter[str]:
    return Counter(kernel.operator for kernel in kernels.elements())
