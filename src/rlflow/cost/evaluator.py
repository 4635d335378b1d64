"""The one place at which methods carry out rewrites and ask for prices, so that all of it is counted alike.

    evaluator = Evaluator(rewriter, cost_model)
    child_ms = evaluator.runtime_after_ms(graph, match)      # mostly without carrying the rewrite out
    child = evaluator.rewritten(graph, match)
    evaluator.effort                                         # Effort(rewrites=1, prices_asked=1, ...)

The invariant: the price of a rewrite is, to the bit, what the cost model says of the graph after it. With a cost model
that is a sum over parts of the graph, the change by a rewrite is remembered wherever it looks the same
(`cost/remembered_changes.py`); with any other, each rewrite of a graph is carried out once to be priced. A
caller with many rewrites of a graph to price goes through them by `foreseen`, so that missing prices are measured
together.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from rlflow.cost.base import Cost, CostModel, MeasuringCostModel, least_change_ms, local, measuring_of
from rlflow.cost.effort import Effort, Tally
from rlflow.cost.remembered_changes import RememberedChanges
from rlflow.ir.graph import Graph
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter

_MAX_REMEMBERED = 20_000  # prices, each of which keeps a graph alive that it starts from
_MAX_KEPT = 64  # graphs

K = TypeVar("K")
S = TypeVar("S")
T = TypeVar("T")


class Evaluator:
    """Carries out rewrites and prices them, and counts the effort, into a tally of its own unless it is given one."""

    def __init__(self, rewriter: Rewriter, cost_model: CostModel, tally: Tally | None = None) -> None:
        self.rewriter = rewriter
        self.cost_model = cost_model
        self.tally = tally or Tally()
        model = local(cost_model)
        self._changes = None if model is None else RememberedChanges(model, rewriter)
        self._carried_out: OrderedDict[tuple[Graph, Match], Graph] = OrderedDict()
        self._foreseen: dict[tuple[Graph, Match], Graph] = {}
        self._whole_ms: OrderedDict[tuple[Graph, Match], float] = OrderedDict()

    @property
    def effort(self) -> Effort:
        """The effort so far."""
        return self.tally.effort

    def rewritten(self, graph: Graph, match: Match) -> Graph:
        """Carry out a rewrite, unless it was carried out just now to be priced."""
        place = (graph, match)
        child = self._carried_out.pop(place, None) or self._foreseen.pop(place, None)
        if child is None:
            started = time.perf_counter()
            child = self.rewriter.apply(graph, match)
            self.tally.count(Effort(rewrites=1, rewriting_s=time.perf_counter() - started))
        return child

    def runtime_ms(self, graph: Graph) -> float:
        """Ask for the price of a graph."""
        self.tally.prices_asked += 1
        return self._timed(lambda: self._asked(self.cost_model.runtime_ms, graph))

    def confirmed_ms(self, graph: Graph) -> float:
        """Return the cost model's own word for a graph that was priced before it was made, as `runtime_after_ms` did.

        It is the same price, and not counted as another one.
        """
        return self._timed(lambda: self._asked(self.cost_model.runtime_ms, graph))

    def cost(self, graph: Graph) -> Cost:
        """Ask for the price of a graph with all that belongs to it."""
        self.tally.prices_asked += 1
        return self._timed(lambda: self._asked(self.cost_model.cost, graph))

    def runtime_after_ms(self, graph: Graph, match: Match) -> float:
        """Ask for the price of a graph after a rewrite."""
        changes = self._changes
        self.tally.prices_asked += 1
        if changes is None:
            return self._timed(lambda: self._whole(graph, match))
        return self._timed(lambda: changes.runtime_after_ms(graph, match, self._tried))

    def runtimes_after_ms(self, graph: Graph, matches: Iterable[Match]) -> list[float]:
        """Ask for the price of a graph after each of some rewrites; missing prices are measured together."""
        places = ((None, match) for match in matches)
        return [self.runtime_after_ms(graph, match) for _, match in self.foreseen(graph, places)]

    def foreseen(
        self, graph: Graph, places: Iterable[tuple[K, Match]], deadline: float | None = None
    ) -> Iterator[tuple[K, Match]]:
        """Yield rewrites of a graph, in their order, that are about to be priced.

        A cost model that measures does so for many of them together, until `deadline`, before the first is yielded: one
        rewrite for each kind of surroundings is carried out beforehand.
        """
        model, changes = self.cost_model, self._changes
        if changes is None or not isinstance(model, MeasuringCostModel):
            yield from places
            return

        left = iter(places)
        while ahead := self._look_ahead(graph, left, changes):
            children = list(self._foreseen.values())
            if children:
                self._timed(partial(self._asked, partial(model.measure, deadline=deadline), children))
            yield from ahead

    def _look_ahead(
        self, graph: Graph, places: Iterator[tuple[K, Match]], changes: RememberedChanges
    ) -> list[tuple[K, Match]]:
        """Carry out a few of the next rewrites, those that are priced by that; return them and those between them."""
        self._foreseen.clear()
        ahead, keys = [], set()
        for place, match in places:
            ahead.append((place, match))
            key = self._timed(partial(changes.unknown, graph, match))
            if key is not None and key not in keys:
                keys.add(key)
                self._foreseen[graph, match] = self.rewritten(graph, match)
                if len(keys) == _MAX_KEPT:
                    break
        return ahead

    def least_change_ms(self, graph: Graph, match: Match) -> float:
        """Return what a rewrite must change for it to count, which is only known once it is carried out."""
        return self._tried(graph, match, lambda child: least_change_ms(self.cost_model, graph, child))

    def _tried(self, graph: Graph, match: Match, price: Callable[[Graph], T]) -> T:
        """Carry out a rewrite, price what comes of it, and keep that for a moment: it may be taken."""
        child = self._carried_out[graph, match] = self.rewritten(graph, match)
        if len(self._carried_out) > _MAX_KEPT:
            self._carried_out.popitem(last=False)
        return self._asked(price, child)

    def _whole(self, graph: Graph, match: Match) -> float:
        """Return the price that the cost model gives to the whole graph after a rewrite."""
        known = self._whole_ms.get((graph, match))
        if known is None:
            known = self._whole_ms[graph, match] = self._tried(graph, match, self.cost_model.runtime_ms)
            if len(self._whole_ms) > _MAX_REMEMBERED:
                self._whole_ms.popitem(last=False)
        return known

    def _timed(self, ask: Callable[[], T]) -> T:
        """Count as pricing all time but that of rewrites and measurements."""
        started, before = time.perf_counter(), self.tally.others
        price = ask()
        other_s = _not_pricing_s(self.tally.others) - _not_pricing_s(before)
        self.tally.pricing_s += time.perf_counter() - started - other_s
        return price

    def _asked(self, question: Callable[[S], T], subject: S) -> T:
        """Put a question to the cost model, and count what it measures to answer."""
        before = measuring_of(self.cost_model)
        answer = question(subject)
        after = measuring_of(self.cost_model)
        if after != before:
            prices, seconds = after.prices - before.prices, after.seconds - before.seconds
            self.tally.count(Effort(prices_measured=prices, measuring_s=seconds))
        return answer


def _not_pricing_s(effort: Effort) -> float:
    return effort.rewriting_s + effort.measuring_s
