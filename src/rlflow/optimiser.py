"""The interface of every method of optimising a graph, and the bookkeeping that the methods share.

A method (`Optimiser`) takes a graph and a `Budget` and gives an `OptimisationResult`: the cheapest graph that it met,
and the steps that lead there. Inside, a `Workspace` carries the steps out, prices them and counts them:

    work = Workspace.begin(graph, rewriter, cost_model, library.hash, budget)
    child = work.step(work.start, Location(rule=3, index=0))        # a State: graph, price and how it was reached
    return work.result(child)

The invariant: a result's trajectory replays from the graph that the method was given to the graph that it returns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Protocol

from rlflow.cost.base import CostModel
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.trajectory.record import Step, Trajectory

OnProgress = Callable[[float, str], None]
"""Called with the fraction done (0 to 1) and a line of text."""


@dataclass(frozen=True)
class Budget:
    """A limit on time and on expansions; None is no limit. An expansion looks at all rewrites of one graph."""

    time_s: float | None = None
    expansions: int | None = None

    def __post_init__(self) -> None:
        if self.time_s is not None and not self.time_s > 0:
            raise InputError(f"a budget must be positive, not {self.time_s} s")
        if self.expansions is not None and self.expansions < 1:
            raise InputError(f"a budget must be positive, not {self.expansions} expansions")


@dataclass(frozen=True)
class OptimisationResult:
    """`best` is the cheapest graph met, not the last. `interactions` counts rewrites carried out and priced."""

    best: Graph
    best_ms: float
    start_ms: float
    trajectory: Trajectory
    wall_time_s: float
    interactions: int

    @property
    def improvement_percent(self) -> float:
        return 100.0 * (self.start_ms - self.best_ms) / self.start_ms if self.start_ms else 0.0


class Optimiser(Protocol):
    """A method. The same seed, rules and prices give the same result, unless the budget is a time."""

    @property
    def name(self) -> str: ...

    @property
    def rewriter(self) -> Rewriter: ...

    def optimise(self, graph: Graph, budget: Budget, on_progress: OnProgress | None = None) -> OptimisationResult: ...


@dataclass(frozen=True, eq=False)
class State:
    """A graph on the way, and how it was reached: `parent` by `action`."""

    graph: Graph
    runtime_ms: float
    parent: State | None = None
    action: Location | None = None

    @cached_property
    def hash(self) -> str:
        return structural_hash(self.graph)

    def path(self) -> list[State]:
        """From the start to here."""
        backwards = [self]
        while backwards[-1].parent is not None:
            backwards.append(backwards[-1].parent)
        return backwards[::-1]

    @property
    def depth(self) -> int:
        return len(self.path()) - 1


@dataclass
class Workspace:
    """One optimisation: rewriting and pricing, with the count of interactions and the clock."""

    rewriter: Rewriter
    cost_model: CostModel
    library_hash: str
    start: State
    budget: Budget
    interactions: int = 0
    started: float = field(default_factory=time.perf_counter)

    @classmethod
    def begin(
        cls, graph: Graph, rewriter: Rewriter, cost_model: CostModel, library_hash: str, budget: Budget
    ) -> Workspace:
        start = State(graph, cost_model.runtime_ms(graph))
        return cls(rewriter, cost_model, library_hash, start, budget)

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self.started

    @property
    def is_out_of_time(self) -> bool:
        return self.budget.time_s is not None and self.elapsed_s >= self.budget.time_s

    def is_spent(self, expansions: int) -> bool:
        return self.is_out_of_time or (self.budget.expansions is not None and expansions >= self.budget.expansions)

    def fraction(self, expansions: int) -> float:
        """The fraction of the budget that is used."""
        of_time = self.elapsed_s / self.budget.time_s if self.budget.time_s else 0.0
        of_expansions = expansions / self.budget.expansions if self.budget.expansions else 0.0
        return min(1.0, max(of_time, of_expansions))

    def actions(self, state: State) -> list[Location]:
        counts = self.rewriter.matches(state.graph).counts
        return [Location(rule, i) for rule, count in enumerate(counts) for i in range(count)]

    def step(self, state: State, action: Location) -> State:
        """Carry out one rewrite and price it."""
        match = self.rewriter.matches(state.graph)[action.rule][action.location]
        return self.reached(state, action, self.rewriter.apply(state.graph, match))

    def reached(self, state: State, action: Location, graph: Graph) -> State:
        """Price a graph that was reached from another by one action, and count the interaction."""
        self.interactions += 1
        return State(graph, self.cost_model.runtime_ms(graph), state, action)

    def result(self, best: State) -> OptimisationResult:
        path = best.path()
        steps = [
            Step(
                rule=self.rewriter.rules[state.action.rule].id,
                location=state.action.location,
                hash=state.hash,
                runtime_ms=state.runtime_ms,
                reward=100.0 * (before.runtime_ms - state.runtime_ms) / (self.start.runtime_ms or 1.0),
            )
            for before, state in pairwise(path)
            if state.action is not None
        ]
        trajectory = Trajectory(
            self.start.hash,
            self.start.runtime_ms,
            self.cost_model.name,
            self.library_hash,
            tuple(steps),
            matching=self.rewriter.matching,
        )
        return OptimisationResult(
            best.graph, best.runtime_ms, self.start.runtime_ms, trajectory, self.elapsed_s, self.interactions
        )
