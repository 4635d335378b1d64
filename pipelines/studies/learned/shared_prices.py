"""Measured prices that searches share, of which each counts those that it would have measured alone.

    cost_model = shared_prices(CostContext(prices=file))
    cost_model.runtime_ms(graph)             # measured by the first search that asks, and read by those after it
    cost_model.measuring.prices              # the same for either

If every search had a list of its own, methods would differ by the noise of their prices; if one list were there from
the beginning, no price would cost anything. Here a search begins with an empty list, and what it lacks comes from the
file, as if it were measured.

Invariant: a region has one price for all searches that share the file, one after the other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rlflow.cost import price_list
from rlflow.cost.base import CostContext, Measuring
from rlflow.cost.border_reorders import ReorderConfig
from rlflow.cost.measured import MeasuredCost, empty_price_list
from rlflow.cost.price_list import PriceList
from rlflow.cost.pricing import OnProgress, PricingConfig, add_prices
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.runtime.hardware import fingerprint


class SharedPrices(MeasuredCost):
    """Prices by a list of this search alone, into which `shared`, kept in a file, is copied price by price."""

    def __init__(self, shared: PriceList, file: Path, pricing: PricingConfig, context: CostContext) -> None:
        alone = replace(shared, prices={})
        super().__init__(context.setting, alone, pricing, context.dimensions, ReorderConfig(block=shared.block))
        self.shared, self.file = shared, file

    def measure(
        self, graphs: Sequence[Graph], deadline: float | None = None, on_progress: OnProgress | None = None
    ) -> int:
        """Do as `MeasuredCost.measure`; the seconds that are counted are those of what nobody had measured before."""
        missing = {each.signature: each for graph in graphs for each in self._missing(graph)}
        unknown = [each for name, each in missing.items() if self.shared.get(self.setting, name) is None]
        started = time.perf_counter()
        if unknown and self.pricing is not None:
            try:
                add_prices(self.shared, unknown, self.setting, self.pricing, self.dimensions, deadline, on_progress)
            finally:  # what was measured before an interruption is kept
                self.shared.save(self.file)
        seconds = time.perf_counter() - started

        known = {name: price for name in missing if (price := self.shared.get(self.setting, name)) is not None}
        for name, price in known.items():
            self.price_list.add(self.setting, name, price)
        self.measuring = Measuring(self.measuring.prices + len(known), self.measuring.seconds + seconds)
        return len(missing) - len(known)


def shared_prices(context: CostContext) -> SharedPrices:
    """Make the cost model; the list is in the file `context.prices`, which is made if there is none.

    `InputError` if no file is named, `PriceError` if its list belongs to another machine.
    """
    if context.prices is None:
        raise InputError("prices are shared by a file: name one")
    pricing = context.configure(PricingConfig)
    if context.prices.exists():
        shared = price_list.load(context.prices, fingerprint(pricing.threads).key)
    else:
        shared = empty_price_list(pricing.threads)
    return SharedPrices(shared, context.prices, pricing, context)
