"""Measured cost: the sum of what a graph's fragments take, each timed once on ONNX Runtime with cold weights.

    cost_model = MeasuredCost("deployed", empty_price_list(threads=1), PricingConfig())
    cost_model.measure([graph, another])        # the prices that they need, sixteen at a time
    cost_model.runtime_ms(graph)                # measures nothing more

`as_written` prices every node by itself, with the runtime's own graph optimisation off. `deployed` prices regions as
ONNX Runtime fuses them at its highest level, so that a rewrite is judged by what will run (docs/decisions.md, 5).

Alone, a view (Reshape and its like) would be charged for copying its operand to the model's output, which it never does
inside a model. Regions of views therefore all have one price, that of a launch.

Invariant: a graph's price follows from the list alone. What the list does not have is measured once and added to it
(`cost/pricing.py`), all that a graph lacks together.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rlflow.cost import price_list
from rlflow.cost.base import CostContext, Measuring
from rlflow.cost.border_reorders import ReorderConfig
from rlflow.cost.exact_sum import Exact
from rlflow.cost.fragment import Fragment, describe
from rlflow.cost.price_list import PriceList
from rlflow.cost.pricing import VIEW, Missing, OnProgress, PricingConfig, Timer, add_prices
from rlflow.cost.region_cost import RegionCost
from rlflow.cost.regions import VIEWS, Partition, Region
from rlflow.errors import PriceError
from rlflow.ir.graph import Graph
from rlflow.runtime.blocks import block_channels
from rlflow.runtime.hardware import fingerprint
from rlflow.runtime.session import Setting

_LOGGER = logging.getLogger(__name__)


def empty_price_list(threads: int) -> PriceList:
    """A list for this machine, without prices."""
    hardware = fingerprint(threads)
    return PriceList(hardware.key, str(hardware), block=block_channels())


class Change(NamedTuple):
    """The difference of two prices in milliseconds, and its noise, one sigma."""

    ms: float
    sigma_ms: float


class _NoPrice(PriceError):
    """A price that the list does not have."""


class MeasuredCost(RegionCost):
    """Prices from a list; what is missing is measured and appended, or refused if `pricing` is None.

    `dimensions` are the sizes of symbolic dimensions at which a model is priced; they are part of a price's name.
    `timer` times a batch of fragments, in the stead of `time_batch`.
    """

    def __init__(
        self,
        setting: Setting,
        price_list: PriceList,
        pricing: PricingConfig | None,
        dimensions: Mapping[str, int] | None = None,
        reorders: ReorderConfig | None = None,
        timer: Timer | None = None,
    ) -> None:
        super().__init__(setting, dimensions, reorders)
        self._sizes = "".join(f"@{name}={size}" for name, size in sorted(self.dimensions.items()))
        self.price_list = price_list
        self.pricing = pricing
        self.timer = timer
        self.measuring = Measuring()

    @property
    def name(self) -> str:
        return self.setting

    def region_ms(self, graph: Graph, region: Region) -> float:
        """Look the price up; `PriceError` if the list does not have it."""
        fragment = _fragment(graph, region)
        price = self.price_list.get(self.setting, fragment.signature + self._sizes)
        if price is None:
            raise _NoPrice(
                f"there is no {self.setting} price for {fragment.description} on {self.price_list.machine}, and none "
                "is to be measured here: measure it there, or price by a list of this machine or with `predicted`"
            )
        return max(0.0, price.ms - self.own_reorders_ms(graph, region))

    def measure(
        self, graphs: Sequence[Graph], deadline: float | None = None, on_progress: OnProgress | None = None
    ) -> int:
        """Measure together the prices that these graphs need and the list does not have.

        Return how many are still missing: all if nothing may be measured, some if time is up, at `deadline` (a moment
        of `time.perf_counter`) or when patience with a slow machine ends. After each batch, and when it begins to wait,
        `on_progress` is called, which may save the list.
        """
        found: dict[str, Missing] = {}
        for graph in graphs:
            for each in self._missing(graph):
                found.setdefault(each.signature, each)
        missing = list(found.values())
        if self.pricing is None or not missing:
            return len(missing)

        known, started = len(self.price_list.prices), time.perf_counter()
        try:
            return add_prices(
                self.price_list,
                missing,
                self.setting,
                self.pricing,
                self.dimensions,
                deadline,
                on_progress,
                self.timer,
            )
        finally:
            prices, seconds = len(self.price_list.prices) - known, time.perf_counter() - started
            self.measuring = Measuring(self.measuring.prices + prices, self.measuring.seconds + seconds)

    def change(self, before: Graph, after: Graph) -> Change:
        """Return what the second graph's price is more than the first one's, both of which the list must know.

        Its noise is that of the parts that one graph has more of than the other: those they share are equally wrong.
        """
        parts = self._parts(after)
        parts.subtract(self._parts(before))
        prices = [(count, self.price_list.get(self.setting, name)) for name, count in parts.items() if count]
        return Change(
            ms=math.fsum((*self.exact_ms(after), *(-part for part in self.exact_ms(before)))),
            sigma_ms=math.hypot(*(count * price.sigma_ms for count, price in prices if price is not None)),
        )

    def _parts(self, graph: Graph) -> Counter[str]:
        """Count the signatures of a graph's regions."""
        fragments = self._fragments(graph, self._partition(graph, None))
        return Counter(fragment.signature + self._sizes for fragment in fragments)

    def exact_ms(self, graph: Graph) -> Exact:
        """Return the sum over all regions; `PriceError` if prices are missing that may not or cannot be measured."""
        try:
            return super().exact_ms(graph)
        except _NoPrice:
            if self.pricing is None:
                raise
        left = self.measure([graph])
        if left:
            raise PriceError(
                f"{left} prices cannot be measured: for {self.pricing.patience_s:g} s the machine was over "
                f"{self.pricing.slow_pace:g} times slower than when the price list was begun; try again when nothing "
                "else runs on it, or begin another list"
            )
        return super().exact_ms(graph)

    def _missing(self, graph: Graph) -> list[Missing]:
        """Return the fragments without a price in a graph, those apart that it shares with a parent that has all."""
        try:
            super().exact_ms(graph)
            return []
        except _NoPrice:
            before = self._before(graph)
        cut = self._partition(graph, before.partition if before else None)
        fragments = self._fragments(graph, cut)
        named = [Missing(fragment.signature + self._sizes, fragment, graph) for fragment in fragments]
        return [each for each in named if self.price_list.get(self.setting, each.signature) is None]

    def _fragments(self, graph: Graph, cut: Partition) -> list[Fragment]:
        """Describe the new regions of a partition, but for those of which nothing runs."""
        regions = (self.nodes_of(graph, region) for region in cut.made)
        return [_fragment(graph, region) for region in regions if region]


def _fragment(graph: Graph, region: Region) -> Fragment:
    return VIEW if all(graph.nodes[i].op in VIEWS for i in region) else describe(graph, region)


def measured(context: CostContext, timer: Timer | None = None) -> MeasuredCost:
    """Make the cost model "measured"; its settings are those of `PricingConfig`, and `timer` times its fragments.

    With published prices of another machine, graphs are priced as there, and nothing is measured. `PriceError` if there
    is no price list in a file named, or if the one in `context.prices` belongs to another machine.
    """
    pricing = context.configure(PricingConfig)
    here = fingerprint(pricing.threads).key
    published = None if context.published is None else price_list.read(context.published)
    if published is not None and published.hardware != here:
        _LOGGER.warning(
            "%s has prices of another machine: %s. None is measured here", context.published, published.machine
        )
        return _of(published, None, context, timer)
    if context.prices is not None:
        return _of(price_list.load(context.prices, here), pricing, context, timer)
    return _of(published or empty_price_list(pricing.threads), pricing, context, timer)


def _of(prices: PriceList, pricing: PricingConfig | None, context: CostContext, timer: Timer | None) -> MeasuredCost:
    """Price for the machine of a list."""
    reorders = ReorderConfig(block=prices.block)
    return MeasuredCost(context.setting, prices, pricing, context.dimensions, reorders, timer)
