"""Greedy descent: always the rewrite that saves most, until none saves anything."""

from __future__ import annotations

from dataclasses import dataclass

from rlflow.ir.graph import Graph
from rlflow.optimiser import Budget, OnProgress, OptimisationResult
from rlflow.search.base import Search

NOISE_FREE_GAIN = 1e-9  # relative; below it lies only the rounding of sums of prices


@dataclass(frozen=True)
class Greedy(Search):
    """Runs to its fixpoint unless the budget ends it. Ties go to the first rule and location."""

    name: str = "greedy"

    def optimise(self, graph: Graph, budget: Budget, on_progress: OnProgress | None = None) -> OptimisationResult:
        work = self.begin(graph, budget)
        state = work.start
        expansions = 0
        while not work.is_spent(expansions):
            expansions += 1
            best = min(work.options(state), key=lambda option: option.runtime_ms, default=None)
            if best is None or best.runtime_ms >= state.runtime_ms * (1 - NOISE_FREE_GAIN):
                break
            state = work.take(state, best)
            if on_progress:
                on_progress(work.fraction(expansions), f"{state.runtime_ms:.3f} ms after {expansions} rewrites")
        return work.result(state)
