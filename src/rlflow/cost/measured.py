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
from weakref import WeakKeyDictionary

from immutables import Map

from rlflow.cost import price_list
from rlflow.cost.analytic import AnalyticConfig
from rlflow.cost.base import Cost, CostContext, Measuring, Surroundings
from rlflow.cost.exact_sum import Exact, exact
from rlflow.cost.fragment import Fragment, describe, extract, leaves
from rlflow.cost.neighbourhood import Neighbourhoods
from rlflow.cost.price_list import Price, PriceList
from rlflow.cost.regions import (
    VIEWS,
    Partition,
    Region,
    concerned,
    node_by_node,
    partition,
    rescaled,
    updated,
    updated_node_by_node,
)
from rlflow.cost.work import WorkCounter
from rlflow.errors import PriceError, RLFlowError
from rlflow.ir.graph import Graph
from rlflow.ir.node import Ref
from rlflow.ir.preview import Preview
from rlflow.onnx_io.standalone import standalone_model
from rlflow.runtime.hardware import fingerprint
from rlflow.runtime.session import Setting
from rlflow.runtime.timing.fragments import FragmentTiming, launch_ns, time_fragment

_LOGGER = logging.getLogger(__name__)
_MAX_REMEMBERED = 200_000
_VIEW = Fragment("view", "a view: Reshape, Squeeze, Unsqueeze, Flatten or Identity", ())

_PARTITIONS = {"as_written": (node_by_node, updated_node_by_node), "deployed": (partition, updated)}


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


@dataclass(frozen=True)
class _Pricing:
    """A graph's regions, of each by its first node the price, and the sum."""

    partition: Partition
    ms: Map[int, float]
    exact_ms: Exact


class MeasuredCost:
    """Prices from a list; what is missing is measured and appended, or refused if `pricing` is None.

    `dimensions` are the sizes of symbolic dimensions at which a model is priced; they are part of a price's name.
    """

    def __init__(
        self,
        setting: Setting,
        price_list: PriceList,
        pricing: PricingConfig | None,
        dimensions: Mapping[str, int] | None = None,
    ) -> None:
        self.setting: Setting = setting
        self.dimensions = dict(dimensions or {})
        self._sizes = "".join(f"@{name}={size}" for name, size in sorted(self.dimensions.items()))
        self.price_list = price_list
        self.pricing = pricing
        self.measuring = Measuring()
        self._work = WorkCounter()
        self._neighbourhoods = Neighbourhoods()
        self._pricings: WeakKeyDictionary[Graph, _Pricing] = WeakKeyDictionary()
        self._remembered: dict[tuple[object, ...], float] = {}

    @property
    def name(self) -> str:
        return self.setting

    def runtime_ms(self, graph: Graph) -> float:
        """The part that searches and rewards look at all the time; `PriceError` if a price may not be measured.

        The sum is exact and rounded once, so that it does not depend on the history of the graph.
        """
        return math.fsum(self.exact_ms(graph))

    def exact_ms(self, graph: Graph) -> Exact:
        """Return the sum over all regions."""
        return self._pricing(graph).exact_ms

    def surroundings(self, graph: Graph, edit: Preview) -> Surroundings:
        """Write down the regions that the edit may change."""
        nodes = concerned(self._pricing(graph).partition, graph, edit)
        return Surroundings(self._neighbourhoods.written(graph, edit, nodes), nodes)

    def disturbed(self, graph: Graph) -> set[int]:
        """Return the nodes that may be fused differently although they were not changed themselves."""
        return set(rescaled(graph, graph.edit.change.touched)) if graph.edit else set()

    def cost(self, graph: Graph) -> Cost:
        """`PriceError` if a price is missing and may not be measured."""
        work = self._work.graph(graph)
        return Cost(
            self.runtime_ms(graph),
            work.flops,
            work.bytes_moved,
            work.launches,
            work.load_time_flops,
        )

    def _pricing(self, graph: Graph) -> _Pricing:
        """From the parent's, where the graph has one: regions that were not cut again keep their prices."""
        known = self._pricings.get(graph)
        if known is None:
            parent = graph.edit.parent() if graph.edit else None
            before = self._pricings.get(parent) if parent is not None else None
            cut = self._partition(graph, before.partition if before else None)
            ms = (before.ms if before else Map[int, float]()).mutate()
            gone = [ms.pop(region[0]) for region in cut.gone]
            made = {region[0]: self._fragment_ms(graph, region) for region in cut.made}
            ms.update(made)
            total = exact((*(before.exact_ms if before else ()), *made.values(), *(-price for price in gone)))
            known = self._pricings[graph] = _Pricing(cut, ms.finish(), total)
        return known

    def _partition(self, graph: Graph, before: Partition | None) -> Partition:
        cut, cut_again = _PARTITIONS[self.setting]
        return cut_again(before, graph, graph.edit.change) if before and graph.edit else cut(graph)

    def _fragment_ms(self, graph: Graph, nodes: Region) -> float:
        # A node object is shared by all graphs that contain it unchanged, with the operands it had: together with the
        # values that are read outside it names the price.
        read = (leaves(graph, Ref(i, k), nodes) for i in nodes for k in range(len(graph.nodes[i].types)))
        key = (*(graph.nodes[i] for i in nodes), *read)
        known = self._remembered.get(key)
        if known is None:
            only_views = all(graph.nodes[i].op in VIEWS for i in nodes)
            known = self._priced(graph, _VIEW if only_views else describe(graph, nodes))
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = known
        return known

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
    return MeasuredCost(context.setting, prices, pricing, context.dimensions)
