"""The best of a few graphs that a search went through, by prices measured on this machine.

A search asks for thousands of prices and goes by a cost model that costs no time. What it found is one graph, and
others lie on the way to it: a few of these are priced again, part by part as ONNX Runtime runs them here, and the
cheapest is gone on with. Most parts are those of the original, or alike in every layer, so that a few dozen are
measured. Of a search of 40 steps and a shortlist of 4, those are the graphs after 0, 13, 27 and 40 steps.

Invariant: with the deadline the measuring ends. What is not known of both ends by then decides nothing, and the search
is believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlflow.cost.effort import Effort
from rlflow.cost.measured import MeasuredCost
from rlflow.errors import InputError, PriceError
from rlflow.ir.graph import Graph
from rlflow.optimise.clock import Deadline
from rlflow.optimise.report import Measured
from rlflow.optimiser import OnProgress, OptimisationResult
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.replay import of_its_rules, replay


@dataclass(frozen=True)
class Shortlist:
    """Prices at most `size` graphs, the original and the search's best among them."""

    cost_model: MeasuredCost
    size: int = 4

    def __post_init__(self) -> None:
        if self.size < 2:
            raise InputError(f"a shortlist holds the original and the best graph at least, not {self.size}")

    def best(
        self,
        start: Graph,
        found: OptimisationResult,
        rewriter: Rewriter,
        deadline: Deadline,
        on_progress: OnProgress | None = None,
    ) -> tuple[OptimisationResult, Measured | None]:
        """Return the result that ends at the cheapest graph of the list, perhaps without a step, and its prices.

        That is the result itself, and None, where there was no time to price both ends. What was measured counts among
        the result's effort.
        """
        graphs = self._listed(start, found, rewriter)
        before = self.cost_model.measuring
        self._measure([start, found.best], deadline, on_progress)
        self._measure(list(graphs.values()), deadline, on_progress)
        after = self.cost_model.measuring
        measuring = Effort(prices_measured=after.prices - before.prices, measuring_s=after.seconds - before.seconds)
        found = replace(found, effort=found.effort + measuring)

        prices_ms = {steps: ms for steps, graph in graphs.items() if (ms := self._known_ms(graph)) is not None}
        last = len(found.trajectory.steps)
        if not {0, last} <= prices_ms.keys():
            return found, None
        steps = min(prices_ms, key=lambda steps: (prices_ms[steps], steps))
        return _ended(found, steps, graphs[steps]), Measured(prices_ms[0], prices_ms[steps], len(prices_ms))

    def _listed(self, start: Graph, found: OptimisationResult, rewriter: Rewriter) -> dict[int, Graph]:
        """Return graphs by the number of steps that lead there, both ends and others evenly between them."""
        last = len(found.trajectory.steps)
        between = min(self.size, last + 1) - 1
        wanted = {round(last * place / between) for place in range(between + 1)} - {0, last}
        graphs = {0: start, last: found.best}
        if wanted:
            walked = enumerate(replay(start, found.trajectory, of_its_rules(found.trajectory, rewriter)))
            graphs |= {steps: graph for steps, graph in walked if steps in wanted}
        return graphs

    def _measure(self, graphs: Sequence[Graph], deadline: Deadline, on_progress: OnProgress | None) -> None:
        for graph in graphs:
            if not deadline.is_over:
                self.cost_model.runtime_ms(graph)

    def _known_ms(self, graph: Graph) -> float | None:
        """Return the price of a graph if all its parts are known."""
        cost = self.cost_model
        try:
            return MeasuredCost(cost.setting, cost.price_list, None, cost.dimensions).runtime_ms(graph)
        except PriceError:
            return None


def _ended(found: OptimisationResult, steps: int, graph: Graph) -> OptimisationResult:
    """Return the result that ends after so many steps, at this graph."""
    taken = found.trajectory.steps[:steps]
    if len(taken) == len(found.trajectory.steps):
        return found
    best_ms = taken[-1].runtime_ms if taken else found.start_ms
    return replace(
        found, best=graph, best_ms=best_ms, trajectory=replace(found.trajectory, steps=taken), optimality=None
    )
