"""Greedy descent: always the rewrite that saves most, until none saves anything."""

from __future__ import annotations

from dataclasses import dataclass

from rlflow.cost.base import least_change_ms
from rlflow.method import OnProgress, Option, State, Workspace
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
        best = _saving_most(work, state)
        if best is None:
            break
        state = work.take(state, best)
        if on_progress:
            on_progress(work.fraction, f"{state.runtime_ms:.3f} ms after {state.depth} rewrites")
    return state


def _saving_most(work: Workspace, state: State) -> Option | None:
    """Return the rewrite that saves most, of those that save more than what may be noise."""
    cheaper = [option for option in work.options(state) if option.runtime_ms < enough_ms(state)]
    cheaper.sort(key=lambda option: option.runtime_ms)
    for option in cheaper:
        if state.runtime_ms - option.runtime_ms >= work.evaluator.least_change_ms(state.graph, option.match):
            return option
    return None


def enough_ms(state: State) -> float:
    """Return the price below which a graph is cheaper than this one beyond rounding."""
    return state.runtime_ms * (1 - NOISE_FREE_GAIN)


def saves(work: Workspace, before: State, after: State) -> bool:
    """Return True if a graph is cheaper than another one, beyond rounding and beyond what may be noise."""
    least_ms = least_change_ms(work.evaluator.cost_model, before.graph, after.graph)
    return after.runtime_ms < enough_ms(before) and before.runtime_ms - after.runtime_ms >= least_ms
