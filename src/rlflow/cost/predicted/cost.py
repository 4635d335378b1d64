"""Predicted cost: the sum of what a graph's regions take, as a model tells that was learned from measured regions.

    PredictedCost(load()).runtime_ms(graph)

No clock is involved: the same graph has the same price on every machine, quiet or busy, so that the same commit finds
the same graphs. `pace` turns prices into milliseconds of another machine, which changes none of their ratios.

A region that was measured may be given in a price list, which then counts instead of the prediction: the graph that a
user begins with, and regions that are far from what the model has learned from (`far`).

Invariant: a price is a function of the graph, of the model and of the list alone.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rlflow.cost.base import CostContext
from rlflow.cost.fragment import describe
from rlflow.cost.predicted.features import FeatureReader
from rlflow.cost.predicted.noise import Noise
from rlflow.cost.predicted.price_model import PriceModel, load
from rlflow.cost.price_list import PriceList
from rlflow.cost.region_cost import RegionCost
from rlflow.cost.regions import VIEWS, Region
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.runtime.session import Setting

_LOGGER = logging.getLogger(__name__)
_MANY_REGIONS = 10_000
"""Regions from which on a price model is worth its name."""


@dataclass(frozen=True)
class PredictedConfig:
    """The machine, the noise of prices, and when a region is far from what the model has learned from.

    - `pace`: how many times as long as at the model's reference pace the probe takes on the machine.
    - `noise_share`, `noise_us`: what each changed region adds to the standard error of a change, as a share of its
      price and in microseconds beside. The share is none: the work that a region keeps is in its old price and in its
      new one, and so is that work's error. With a share, as measured prices have it, greedy search would pass over the
      small steps of which large gains are made.
    - `least_sigmas`: the standard errors of a change below which it counts as none.
    - `far`: the strangeness (`PriceModel.strangeness`) from which on a region is far.

    `InputError` for a pace that is not positive, or a negative number.
    """

    pace: float = 1.0
    noise_share: float = 0.0
    noise_us: float = 1.5
    least_sigmas: float = 2.0
    far: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.pace < math.inf:
            raise InputError(f"pace must be positive, not {self.pace}")
        for name in ("noise_share", "noise_us", "least_sigmas", "far"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} cannot be negative: {getattr(self, name)}")


class PredictedCost(RegionCost):
    """Predicts the price of each region; those in `prices` have the price that was measured.

    `dimensions` are the sizes of symbolic dimensions. The model has learned from regions as they are deployed: for
    nodes as they are written, what it says is an estimate of unknown accuracy.
    """

    def __init__(
        self,
        model: PriceModel,
        config: PredictedConfig | None = None,
        setting: Setting = "deployed",
        dimensions: Mapping[str, int] | None = None,
        prices: PriceList | None = None,
    ) -> None:
        self.config = config or PredictedConfig()
        super().__init__(setting, dimensions, model.description.reorders.at_pace(self.config.pace))
        self.model = model
        self.prices = prices
        self._noise = Noise(self.config.noise_share, self.config.noise_us)
        self._reader = FeatureReader(dimensions)
        self._sizes = "".join(f"@{name}={size}" for name, size in sorted((dimensions or {}).items()))

    @property
    def name(self) -> str:
        return "predicted"

    def region_ms(self, graph: Graph, region: Region) -> float:
        """Return the measured price of a region where there is one, else the predicted one."""
        if all(graph.nodes[i].op in VIEWS for i in region):
            return self.config.pace * self.model.description.view_ms
        measured_ms = self._measured_ms(graph, region)
        if measured_ms is not None:
            return measured_ms
        (ms,) = self.model.ms([self._reader.features(graph, region)])
        return self.config.pace * ms

    def far(self, graph: Graph) -> list[Region]:
        """Return the regions whose prices should be measured: far from what the model knows, and in no list."""
        return sorted(region for region in self._pricing(graph).partition.regions if self._is_far(graph, region))

    def far_share(self, graph: Graph) -> float:
        """Return the share of the graph's regions that are far."""
        regions = self._pricing(graph).partition.regions
        return len(self.far(graph)) / len(regions) if regions else 0.0

    def least_change_ms(self, before: Graph, after: Graph) -> float:
        """Return what must lie between the prices of two graphs for the change to count.

        Regions of one price are wrong together, others each for itself.
        """
        old, new = (Counter(self._pricing(graph).ms.values()) for graph in (before, after))
        changed = [(new[ms] - old[ms]) * self._noise.sigma_ms(ms) for ms in {*old, *new}]
        return self.config.least_sigmas * math.hypot(*sorted(changed))

    def _is_far(self, graph: Graph, region: Region) -> bool:
        if all(graph.nodes[i].op in VIEWS for i in region) or self._measured_ms(graph, region) is not None:
            return False
        return self.model.strangeness(self._reader.features(graph, region)) >= self.config.far

    def _measured_ms(self, graph: Graph, region: Region) -> float | None:
        """Return the measured price of a region at the pace of the machine, None where there is none."""
        if self.prices is None:
            return None
        price = self.prices.get(self.setting, describe(graph, region).signature + self._sizes)
        if price is None:
            return None
        probe_ms = self.config.pace * self.model.description.probe_ms
        ms = price.ms * probe_ms / (self.prices.probe_ms or probe_ms)
        return max(0.0, ms - self.own_reorders_ms(graph, region))


def predicted(context: CostContext) -> PredictedCost:
    """Make the cost model "predicted"; its settings are those of `PredictedConfig`.

    No price list is read, not even a given one: what was measured on one machine would change the prices there alone.
    For that, give the list to `PredictedCost`. `PriceError` if the model that ships cannot be read.
    """
    config, model = context.configure(PredictedConfig), load()
    if (regions := model.description.trained_on["regions"]) < _MANY_REGIONS:
        _LOGGER.warning(
            "the price model has learned from %d regions only, and predicts roughly: "
            "`make study NAME=prices` and `make study NAME=price_model` renew it on a quiet machine",
            regions,
        )
    return PredictedCost(model, config, context.setting, context.dimensions)
