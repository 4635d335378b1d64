"""Greedy search first, and then a trained policy: what is found is never worse than greedy search's.

    optimiser = AfterGreedy(Greedy(library, rewriter, cost_model), policy)
    result = optimiser.optimise(graph, Budget(time_s=60))

A policy that plays episodes begins each at the original, since that is where a dream begins, and may end above what
greedy search finds in a moment. Both start at the original; the better result is returned, and the effort is that of
both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rlflow.agents.policy_optimiser import PolicyOptimiser
from rlflow.ir.graph import Graph
from rlflow.method import Budget, Milestone, OnProgress, OptimisationResult
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.base import Search


@dataclass(frozen=True)
class AfterGreedy:
    """A policy's optimiser that begins with greedy search, by the same rewriter; the budget is that of both."""

    greedy: Search
    policy: PolicyOptimiser

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def rewriter(self) -> Rewriter:
        return self.greedy.rewriter

    def optimise(self, graph: Graph, budget: Budget, on_progress: OnProgress | None = None) -> OptimisationResult:
        """Return the better of both results; greedy search's if it has used up the budget, or the price is 0."""
        first = self.greedy.optimise(graph, replace(budget, expansions=None))
        left_s = None if budget.time_s is None else budget.time_s - first.wall_time_s
        rewrites = None if budget.rewrites is None else budget.rewrites - first.effort.rewrites
        is_spent = any(left is not None and left <= 0 for left in (left_s, rewrites))
        if is_spent or budget.is_called_off() or not first.start_ms:
            return first
        left = replace(budget, time_s=left_s, rewrites=rewrites)
        return _together(first, self.policy.optimise(graph, left, on_progress))


def _together(first: OptimisationResult, second: OptimisationResult) -> OptimisationResult:
    """The better result, the first if they are alike, with the effort and the milestones of both in turn."""
    better = second if second.best_ms < first.best_ms else first
    reached = [
        Milestone(
            rewrites=first.effort.rewrites + milestone.rewrites,
            prices_measured=first.effort.prices_measured + milestone.prices_measured,
            wall_time_s=first.wall_time_s + milestone.wall_time_s,
            runtime_ms=milestone.runtime_ms,
        )
        for milestone in second.milestones
        if milestone.runtime_ms < first.best_ms
    ]
    return replace(
        better,
        wall_time_s=first.wall_time_s + second.wall_time_s,
        effort=first.effort + second.effort,
        milestones=(*first.milestones, *reached),
        expansions=first.expansions + second.expansions,
    )
