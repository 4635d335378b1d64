"""Greedy descent: always the rewrite that saves most, until none saves anything."""

from __future__ import annotations

from dataclasses import dataclass

from rlflow.optimiser import OnProgress, State, Workspace
from rlflow.search.base import Search

NOISE_FREE_GAIN = 1e-9  # relative; below it lies only the rounding of sums of prices


@dataclass(frozen=True)
class Greedy(Search):
    """Runs to its fixpoint unless the budget ends it. Ties go to the first rule and location."""

    name: str = "greedy"

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        return descend(work, state, on_progress)


def descend(work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
    """Take the rewrite that saves most, again and again, until none saves anything or the budget is spent."""
    while not work.is_spent:
        best = min(work.options(state), key=lambda option: option.runtime_ms, default=None)
        if best is None or best.runtime_ms >= enough_ms(state):
            break
        state = work.take(state, best)
        if on_progress:
            on_progress(work.fraction, f"{state.runtime_ms:.3f} ms after {state.depth} rewrites")
    return state


def enough_ms(state: State) -> float:
    """Return the price below which a graph is cheaper than this one beyond rounding."""
    return state.runtime_ms * (1 - NOISE_FREE_GAIN)
