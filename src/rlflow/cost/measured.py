"""Measured cost: the sum of what a graph's fragments take, each timed once on ONNX Runtime with cold weights.

`as_written` prices every node by itself, with the runtime's own graph optimisation off. `deployed` prices regions as
ONNX Runtime fuses them at its highest level, so that a rewrite is judged by what will run (docs/decisions.md, 5).

Alone, a view (Reshape and its like) would be charged for copying its operand to the model's output, which it never does
inside a model. Regions of views therefore all have one price, that of a launch.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from rlflow.cost import price_list
from rlflow.cost.analytic import AnalyticConfig
from rlflow.cost.base import CostContext, Measuring
from rlflow.cost.border_reorders import ReorderConfig
from rlflow.cost.fragment import Fragment, describe, extract
from rlflow.cost.price_list import Price, PriceList
from rlflow.cost.region_cost import RegionCost
from rlflow.cost.regions import VIEWS, Region
from rlflow.cost.work import WorkCounter
from rlflow.errors import PriceError, RLFlowError
from rlflow.ir.graph import Graph
from rlflow.onnx_io.standalone import standalone_model
from rlflow.runtime.blocks import block_channels
from rlflow.runtime.hardware import fingerprint
from rlflow.runtime.session import Setting
from rlflow.runtime.timing.fragments import FragmentTiming, launch_ns, time_fragment

_LOGGER = logging.getLogger(__name__)
_VIEW = Fragment("view", "a view: Reshape, Squeeze, Unsqueeze, Flatten or Identity", ())


@dataclass(frozen=True)
class PricingConfig:
    """The settings by which a fragment is timed.

    It is timed again, at most `attempts` times, while the machine is `slow_pace` times slower than when the first
    price of the list was taken.
    """

    repetitions: int = 12
    time_cap_s: float = 2.0
    attempts: int = 3
    slow_pace: float = 1.2
    threads: int = 1
    seed: int = 0


def empty_price_list(threads: int) -> PriceList:
    """A list for this machine, without prices."""
    hardware = fingerprint(threads)
    return PriceList(hardware.key, str(hardware))


class MeasuredCost(RegionCost):
    """Prices from a list; what is missing is measured and appended, or refused if `pricing` is None.

    `dimensions` are the sizes of symbolic dimensions at which a model is priced; they are part of a price's name.
    """

    def __init__(
        self,
        setting: Setting,
        price_list: PriceList,
        pricing: PricingConfig | None,
        dimensions: Mapping[str, int] | None = None,
        reorders: ReorderConfig | None = None,
    ) -> None:
        super().__init__(setting, dimensions, reorders)
        self._sizes = "".join(f"@{name}={size}" for name, size in sorted(self.dimensions.items()))
        self.price_list = price_list
        self.pricing = pricing
        self.measuring = Measuring()

    @property
    def name(self) -> str:
        return self.setting

    def region_ms(self, graph: Graph, region: Region) -> float:
        """Look the price up, or measure it; `PriceError` if it is missing and may not be measured."""
        if all(graph.nodes[i].op in VIEWS for i in region):
            return self._priced(graph, _VIEW)
        alone_ms = self._priced(graph, describe(graph, region))
        return max(0.0, alone_ms - self.own_reorders_ms(graph, region))

    def _priced(self, graph: Graph, fragment: Fragment) -> float:
        signature = fragment.signature + self._sizes
        price = self.price_list.get(self.setting, signature)
        if price is None:
            if self.pricing is None:
                raise PriceError(
                    f"the price list has no {self.setting} price for {fragment.description}: let a pricing run add it"
                )
            started = time.perf_counter()
            price = self._measured(graph, fragment, self.pricing)
            measured_s = time.perf_counter() - started
            self.measuring = Measuring(self.measuring.prices + 1, self.measuring.seconds + measured_s)
            self.price_list.add(self.setting, signature, price)
        return price.ms

    def _measured(self, graph: Graph, fragment: Fragment, pricing: PricingConfig) -> Price:
        if fragment is _VIEW:
            return Price(round(launch_ns(pricing.threads) / 1e6, 6), fragment.description)
        try:
            timing = self._timed(extract(graph, fragment), pricing)
        except RLFlowError as error:
            _LOGGER.warning("%s cannot be timed by itself and is estimated (%s)", fragment.description, error)
            return Price(_estimate_ms(graph, fragment, self._work), fragment.description, estimated=True)
        pace = self.price_list.probe_ms = self.price_list.probe_ms or timing.probe_ms
        return Price(round(timing.at_pace(pace), 6), fragment.description)

    def _timed(self, fragment: Graph, pricing: PricingConfig) -> FragmentTiming:
        """The timing at the best pace of a few; one is enough unless the machine is far slower than it was."""
        model = standalone_model(fragment)
        pace = self.price_list.probe_ms or math.inf
        timings: list[FragmentTiming] = []
        while len(timings) < pricing.attempts and all(t.probe_ms > pricing.slow_pace * pace for t in timings):
            timings.append(
                time_fragment(
                    model,
                    setting=self.setting,
                    repetitions=pricing.repetitions,
                    threads=pricing.threads,
                    seed=pricing.seed,
                    time_cap_s=pricing.time_cap_s,
                    dimensions=self.dimensions,
                )
            )
        return min(timings, key=lambda timing: timing.probe_ms)


def _estimate_ms(graph: Graph, fragment: Fragment, work: WorkCounter) -> float:
    machine = AnalyticConfig()
    parts = [work.node(graph, i) for i in fragment.nodes]
    traffic_ms = sum(p.bytes_moved for p in parts) / machine.gbytes_per_s / 1e6
    arithmetic_ms = sum(p.flops for p in parts) / machine.gflops_per_s / 1e6
    return max(traffic_ms, arithmetic_ms) + machine.launch_us / 1e3 * len(parts)


def measured(context: CostContext) -> MeasuredCost:
    """Make the cost model "measured"; its settings are those of `PricingConfig`.

    `PriceError` if there is no price list in the file named, or if it belongs to another machine.
    """
    pricing = context.configure(PricingConfig)
    if context.prices is None:
        prices = empty_price_list(pricing.threads)
    else:
        prices = price_list.load(context.prices, fingerprint(pricing.threads).key)
    return MeasuredCost(context.setting, prices, pricing, context.dimensions, ReorderConfig(block=block_channels()))
