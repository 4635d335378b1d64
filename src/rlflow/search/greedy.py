"""Greedy descent: always the rewrites that save most, until none saves anything.

Twelve layers that are alike are one decision: what saves most in one of them is carried out in all before anything else
is looked at. So a model takes as many decisions at any depth:

    layer 1   layer 2   layer 3         look at all rewrites of the model: Add(MatMul) -> Gemm saves most, 0.1 ms each
    Gemm      Gemm      Gemm            three rewrites, each priced, none but these looked at
"""

from __future__ import annotations

from dataclasses import dataclass

from rlflow.cost.base import least_change_ms
from rlflow.method import OnProgress, Option, State, Workspace
from rlflow.search.alike import everywhere
from rlflow.search.base import Search

NOISE_FREE_GAIN = 1e-9  # relative; below it lies only the rounding of sums of prices


@dataclass(frozen=True)
class Greedy(Search):
    """Runs to its fixpoint unless the budget ends it. Ties go to the first rule and location."""

    name: str = "greedy"

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        return descend(work, state, on_progress)


def descend(work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
    """Take the rewrites that save most, again and again, until none saves anything or the budget is spent."""
    while not work.is_spent:
        best = _saving_most(work, state)
        if not best:
            break
        first, *alike = best
        state = everywhere(work, state, work.take(state, first), [option.match.nodes for option in alike])
        if on_progress:
            on_progress(work.fraction, f"{state.runtime_ms:.3f} ms after {state.depth} rewrites")
    return state


def _saving_most(work: Workspace, state: State) -> list[Option]:
    """Return the rewrite that saves most, of those that save more than what may be noise, before all of its rule that
    save the same; none if none saves anything.
    """
    cheaper = [option for option in work.options(state) if option.runtime_ms < enough_ms(state)]
    cheaper.sort(key=lambda option: option.runtime_ms)
    for option in cheaper:
        if state.runtime_ms - option.runtime_ms >= work.evaluator.least_change_ms(state.graph, option.match):
            return [other for other in cheaper if _like(other) == _like(option)]
    return []


def _like(option: Option) -> tuple[int, float]:
    return option.action.rule, option.runtime_ms


def enough_ms(state: State) -> float:
    """Return the price below which a graph is cheaper than this one beyond rounding."""
    return state.runtime_ms * (1 - NOISE_FREE_GAIN)


def saves(work: Workspace, before: State, after: State) -> bool:
    """Return True if a graph is cheaper than another one, beyond rounding and beyond what may be noise."""
    least_ms = least_change_ms(work.evaluator.cost_model, before.graph, after.graph)
    return after.runtime_ms < enough_ms(before) and before.runtime_ms - after.runtime_ms >= least_ms
