"""Predicted cost: the sum of what a graph's regions take, as a model tells that was learned from measured regions.

    PredictedCost(load()).runtime_ms(graph)

No clock is involved: the same graph has the same price on every machine, quiet or busy, so that the same commit finds
the same graphs. Prices are those of one of the processors that the model knows, whichever machine asks. `pace` turns
them into milliseconds of another machine, which changes none of their ratios.

Invariant: a price is a function of the graph and of the model alone.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from rlflow.cost.base import CostContext
from rlflow.cost.models import HERE
from rlflow.cost.predicted.features import FeatureReader
from rlflow.cost.predicted.noise import Noise
from rlflow.cost.predicted.price_model import Place, PriceModel, Processor, load
from rlflow.cost.region_cost import RegionCost
from rlflow.cost.regions import VIEWS, Region
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.runtime.blocks import block_channels
from rlflow.runtime.hardware import machine_name, processor_traits
from rlflow.runtime.session import Setting
from rlflow.runtime.timing.bandwidth import bandwidth_gb_s

_LOGGER = logging.getLogger(__name__)
_BY_DOUBLINGS = ("l2_mb", "cache_mb", "threads")
_BANDWIDTH = "bandwidth_gb_s"
_OTHER_INSTRUCTIONS = 4.0  # doublings
_MANY_REGIONS = 3_000
"""Regions from which on a price model is worth its name."""


@dataclass(frozen=True)
class PredictedConfig:
    """The machine, the noise of prices, and when a region is far from what the model has learned from.

    - `processor`: the name of one that the model knows, "here" for this machine's or the one that is most like it, and
      None for the model's reference, at whose prices experiments are equal everywhere.
    - `threads`: those of the sessions that a price is for, where the processor is the one here; another says its own.
    - `pace`: how many times as long as that processor the machine takes.
    - `noise_share`, `noise_us`: what each changed region adds to the standard error of a change, as a share of its
      price and in microseconds beside. The share is none: the work that a region keeps is in its old price and in its
      new one, and so is that work's error. With a share, as measured prices have it, greedy search would pass over the
      small steps of which large gains are made.
    - `least_sigmas`: the standard errors of a change below which it counts as none.
    - `far`: the strangeness (`PriceModel.strangeness`) from which on a region is far.

    `InputError` for a pace that is not positive, a negative number, or threads of a processor that is not the one here.
    """

    processor: str | None = None
    threads: int = 1
    pace: float = 1.0
    noise_share: float = 0.0
    noise_us: float = 1.5
    least_sigmas: float = 2.0
    far: float = 1.0

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise InputError(f"threads is {self.threads}; a session has at least 1")
        if self.threads > 1 and self.processor != HERE:
            raise InputError(
                f"threads={self.threads} goes with processor={HERE}: the name of a processor that the model knows says "
                "how many threads its prices are for"
            )
        if not 0 < self.pace < math.inf:
            raise InputError(f"pace must be positive, not {self.pace}")
        for name in ("noise_share", "noise_us", "least_sigmas", "far"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} cannot be negative: {getattr(self, name)}")


class PredictedCost(RegionCost):
    """Predicts the price of each region.

    `InputError` for a processor that the model does not know. `dimensions` are the sizes of symbolic dimensions. The
    model has learned from regions as they are deployed: for nodes as they are written, what it says is an estimate of
    unknown accuracy.
    """

    def __init__(
        self,
        model: PriceModel,
        config: PredictedConfig | None = None,
        setting: Setting = "deployed",
        dimensions: Mapping[str, int] | None = None,
    ) -> None:
        self.config = config or PredictedConfig()
        self.processor = _processor(model, self.config)
        super().__init__(setting, dimensions, self.processor.reorders.at_pace(self.config.pace))
        self.model = model
        self._noise = Noise(self.config.noise_share, self.config.noise_us)
        self._reader = FeatureReader(dimensions, self.processor.reorders.block)

    @property
    def name(self) -> str:
        return "predicted"

    def region_ms(self, graph: Graph, region: Region) -> float:
        place = Place.of(self.processor, graph.header.working_set_mb)
        if all(graph.nodes[i].op in VIEWS for i in region):
            return self.config.pace * place.view_ms
        (ms,) = self.model.ms([self._reader.features(graph, region)], place)
        return self.config.pace * ms

    def far(self, graph: Graph) -> list[Region]:
        """Return the regions whose prices should be measured: far from what the model knows."""
        regions = self._pricing(graph).partition.regions
        return sorted(region for region in regions if self._is_far(graph, self.nodes_of(graph, region)))

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
        if all(graph.nodes[i].op in VIEWS for i in region):
            return False
        return self.model.strangeness(self._reader.features(graph, region)) >= self.config.far


def _processor(model: PriceModel, config: PredictedConfig) -> Processor:
    known = model.description.processors
    name = config.processor or model.description.reference
    if name == HERE:
        name = machine_name(config.threads)
        if name not in known:
            traits = {known_as: processor.traits for known_as, processor in known.items()}
            stand_in = nearest(traits, processor_traits(config.threads), lambda: bandwidth_gb_s(config.threads))
            return _as_blocked_here(known[stand_in])
    if name not in known:
        raise InputError(f"the price model knows no processor {name!r}: choose {HERE} or one of {', '.join(known)}")
    return known[name]


def _as_blocked_here(stand_in: Processor) -> Processor:
    """Return the processor that stands in for this one, with this one's blocks of channels: which convolutions are fast
    depends on them.
    """
    return replace(stand_in, reorders=replace(stand_in.reorders, block=block_channels()))


def nearest(
    known: Mapping[str, Mapping[str, float]], traits: Mapping[str, float], bandwidth: Callable[[], float]
) -> str:
    """Return the processor whose traits differ least: caches, threads and bandwidth by their doublings, instructions by
    more than those.

    The `bandwidth`, which takes a second to measure, is asked for only where it can decide: it brings one processor no
    further ahead of another than theirs are apart.
    """

    def doublings(one: Mapping[str, float], other: Mapping[str, float], trait: str) -> float:
        return abs(math.log2(one[trait] / other[trait]))

    def apart(own: Mapping[str, float]) -> float:
        instructions = sum(abs(own[name] - traits[name]) for name in ("avx512", "amx"))
        return sum(doublings(own, traits, trait) for trait in _BY_DOUBLINGS) + _OTHER_INSTRUCTIONS * instructions

    distances = {name: apart(own) for name, own in known.items()}
    first = min(distances, key=distances.__getitem__)
    ahead = {name: distances[name] - doublings(own, known[first], _BANDWIDTH) for name, own in known.items()}
    in_doubt = [name for name in known if ahead[name] <= distances[first]]
    if in_doubt == [first]:
        return first
    here = {_BANDWIDTH: bandwidth()}
    return min(in_doubt, key=lambda name: distances[name] + doublings(known[name], here, _BANDWIDTH))


def predicted(context: CostContext) -> PredictedCost:
    """Make the cost model "predicted"; its settings are those of `PredictedConfig`.

    No price list is read, not even a given one: what was measured on one machine would change the prices there alone.
    `PriceError` if the model that ships cannot be read.
    """
    config, model = context.configure(PredictedConfig), load()
    if (regions := model.description.trained_on["regions"]) < _MANY_REGIONS:
        _LOGGER.warning(
            "the price model has learned from %d regions only, and predicts roughly: "
            "`make study NAME=prices` and `make study NAME=price_model` renew it on a quiet machine",
            regions,
        )
    return PredictedCost(model, config, context.setting, context.dimensions)
