"""Random search: episodes of random rewrites, the best graph of all. The baseline that any method has to beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.optimiser import Budget, OnProgress, OptimisationResult
from rlflow.rules.matching.rewriter import Location
from rlflow.search.base import Search


@dataclass(frozen=True)
class RandomSearch(Search):
    """Uniform over the rules that match, then over the rule's locations. One expansion is one rewrite.

    `episode_steps` rewrites an episode, then again from the start.
    """

    episode_steps: int = 100
    seed: int = 0
    name: str = "random"

    def optimise(self, graph: Graph, budget: Budget, on_progress: OnProgress | None = None) -> OptimisationResult:
        """`InputError` without a budget: nothing else would end it."""
        if budget.time_s is None and budget.expansions is None:
            raise InputError("random search needs a budget: give a time or a number of rewrites")
        rng = np.random.default_rng(self.seed)
        work = self.begin(graph, budget)
        best = state = work.start
        while not work.is_spent(work.effort.rewrites):
            counts = work.rewriter.matches(state.graph).counts
            valid = [rule for rule, count in enumerate(counts) if count]
            if not valid and not state.depth:
                break
            if not valid or state.depth >= self.episode_steps:
                state = work.start
                continue
            rule = valid[int(rng.integers(len(valid)))]
            state = work.step(state, Location(rule, int(rng.integers(counts[rule]))))
            best = min(best, state, key=lambda s: s.runtime_ms)
            if on_progress and work.effort.rewrites % 10 == 0:
                on_progress(work.fraction(work.effort.rewrites), f"{best.runtime_ms:.3f} ms")
        return work.result(best)
