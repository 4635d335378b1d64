"""The one place at which methods carry out rewrites and ask for prices, so that both are counted alike.

evaluator = Evaluator(rewriter, cost_model)
child = evaluator.rewritten(graph, match)
child_ms = evaluator.runtime_ms(child)
evaluator.effort                             # Effort(rewrites=1, prices_asked=1, ...)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from rlflow.cost.base import Cost, CostModel, measuring_of
from rlflow.cost.effort import Effort
from rlflow.ir.graph import Graph
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter

Price = TypeVar("Price", float, Cost)


@dataclass
class Evaluator:
    """Carries out rewrites and prices them, and counts the effort."""

    rewriter: Rewriter
    cost_model: CostModel
    effort: Effort = field(default_factory=Effort)

    def rewritten(self, graph: Graph, match: Match) -> Graph:
        """Carry out a rewrite."""
        started = time.perf_counter()
        child = self.rewriter.apply(graph, match)
        self.effort += Effort(rewrites=1, rewriting_s=time.perf_counter() - started)
        return child

    def runtime_ms(self, graph: Graph) -> float:
        """Ask the cost model for the price of a graph."""
        return self._asked(self.cost_model.runtime_ms, graph)

    def cost(self, graph: Graph) -> Cost:
        """Ask the cost model for the price of a graph with all that belongs to it."""
        return self._asked(self.cost_model.cost, graph)

    def _asked(self, question: Callable[[Graph], Price], graph: Graph) -> Price:
        started, before = time.perf_counter(), measuring_of(self.cost_model)
        price = question(graph)
        elapsed_s, after = time.perf_counter() - started, measuring_of(self.cost_model)
        measuring_s = after.seconds - before.seconds
        self.effort += Effort(
            prices_asked=1,
            prices_measured=after.prices - before.prices,
            pricing_s=elapsed_s - measuring_s,
            measuring_s=measuring_s,
        )
        return price

    def runtime_after_ms(self, graph: Graph, match: Match) -> float:
        """Ask for the price of the graph after a rewrite."""
        return self.runtime_ms(self.rewritten(graph, match))
