"""The best of a few graphs that a search went through, by prices measured on this machine.

A search asks for thousands of prices and goes by a cost model that costs no time. What it found is one graph, and
others lie on the way to it: a few of these are priced again, part by part as ONNX Runtime runs them here, and the
cheapest goes to the next phase. Most parts are those of the original, or alike in every layer, so that a few dozen are
measured. Of a search of 40 steps and a shortlist of 4, those are the graphs after 0, 13, 27 and 40 steps.

Invariant: the search is believed unless a graph is measured to be cheaper than its best beyond twice the noise. So it
is, too, where there was no time to measure both its ends.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlflow.cost.effort import Effort
from rlflow.cost.measured import MeasuredCost
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.method import OnProgress, OptimisationResult
from rlflow.optimise.clock import Deadline
from rlflow.optimise.reported.race import Measured
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.replay import of_its_rules, replay

_SLICE_S = 2.0
"""Measuring is interrupted after so long at the latest, and given up where nothing came of so long."""
_ENDS_OVER_START = 1.5
"""The prices that the original and the search's best lack, over those of the original: most parts are in both."""
_SIGMAS = 2.0


@dataclass(frozen=True)
class Shortlist:
    """Prices at most `size` graphs, the original and the search's best among them."""

    cost_model: MeasuredCost
    size: int = 4

    def __post_init__(self) -> None:
        if self.size < 2:
            raise InputError(f"a shortlist holds at least the original and the best graph: {self.size} are too few")

    def best(
        self,
        start: Graph,
        found: OptimisationResult,
        rewriter: Rewriter,
        deadline: Deadline,
        on_progress: OnProgress | None = None,
        price_s: float = 0.0,
    ) -> tuple[OptimisationResult, Measured | None]:
        """Return the result that ends at the cheapest graph of the list, perhaps without a step, and its prices.

        That is the result itself, and None, where there was no time to price both ends. Nothing is measured that would
        take too long if a price took `price_s`. What was measured counts among the result's effort.
        """
        before = self.cost_model.measuring
        graphs = {0: start, len(found.trajectory.steps): found.best}
        if self._measure_all(list(graphs.values()), deadline, on_progress, price_s):
            graphs = self._listed(graphs, found, rewriter)
            self._measure_all(list(graphs.values()), deadline, on_progress, price_s)
        after = self.cost_model.measuring
        measuring = Effort(prices_measured=after.prices - before.prices, measuring_s=after.seconds - before.seconds)
        return self._chosen(graphs, replace(found, effort=found.effort + measuring))

    def _listed(self, ends: dict[int, Graph], found: OptimisationResult, rewriter: Rewriter) -> dict[int, Graph]:
        """Return both ends and other graphs evenly between them, by the number of steps that lead there."""
        last = max(ends)
        between = min(self.size - 1, last)
        wanted = {round(last * place / between) for place in range(1, between)}
        if not wanted:
            return ends
        walked = enumerate(replay(ends[0], found.trajectory, of_its_rules(found.trajectory, rewriter)))
        return ends | {steps: graph for steps, graph in walked if steps in wanted}

    def foreseen_s(self, start: Graph, price_s: float) -> float:
        """Foresee the seconds that it takes to price both ends of a search from this graph."""
        return _ENDS_OVER_START * self._missing([start]) * price_s

    def _measure_all(
        self, graphs: Sequence[Graph], deadline: Deadline, on_progress: OnProgress | None, price_s: float
    ) -> bool:
        """Measure what the graphs' prices lack; return whether none is missing.

        It is not begun, or given up, where there is too little time for all.
        """
        missing = self._missing(graphs)
        while missing and not deadline.is_over and missing * price_s <= deadline.left_s:
            started = time.perf_counter()
            left = self.cost_model.measure(graphs, started + min(deadline.left_s, _SLICE_S), on_progress)
            if left == missing:
                break
            price_s = (time.perf_counter() - started) / (missing - left)
            missing = left
        return not missing

    def _missing(self, graphs: Sequence[Graph]) -> int:
        """Count the prices that the graphs lack, measuring none."""
        return self.cost_model.measure(graphs, deadline=time.perf_counter())

    def _chosen(
        self, graphs: dict[int, Graph], found: OptimisationResult
    ) -> tuple[OptimisationResult, Measured | None]:
        """Choose among the graphs whose prices are known, and end the result there."""
        known = {steps: graph for steps, graph in graphs.items() if not self._missing([graph])}
        last = len(found.trajectory.steps)
        if not {0, last} <= known.keys():
            return found, None
        changes = {steps: self.cost_model.change(known[last], graph) for steps, graph in known.items()}
        cheaper = [steps for steps, change in changes.items() if change.ms < -_SIGMAS * change.sigma_ms]
        steps = min(cheaper, key=lambda steps: (changes[steps].ms, steps), default=last)
        before_ms, after_ms = (self.cost_model.runtime_ms(known[place]) for place in (0, steps))
        return _ended(found, steps, known[steps]), Measured(before_ms, after_ms, len(known))


def _ended(found: OptimisationResult, steps: int, graph: Graph) -> OptimisationResult:
    """Return the result that ends after so many steps, at this graph."""
    taken = found.trajectory.steps[:steps]
    if len(taken) == len(found.trajectory.steps):
        return found
    best_ms = taken[-1].runtime_ms if taken else found.start_ms
    ended = replace(found.trajectory, steps=taken)
    return replace(found, best=graph, best_ms=best_ms, trajectory=ended, optimality=None)
