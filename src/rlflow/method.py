"""The interface of every method of optimising a graph, and the bookkeeping that the methods share.

A method (`Method`) takes a graph and a `Budget` and gives an `OptimisationResult`: the cheapest graph that it met,
and the steps that lead there. Inside, a `Workspace` prices rewrites, carries them out and counts the effort:

    work = Workspace.begin(graph, rewriter, cost_model, library.hash, budget)
    cheapest = min(work.options(work.start), key=lambda option: option.runtime_ms)
    child = work.take(work.start, cheapest)                         # a State: graph, price and how it was reached
    return work.result(child)

The invariant: a result's trajectory replays from the graph that the method was given to the graph that it returns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, Protocol

from rlflow.cost.base import CostModel
from rlflow.cost.effort import Effort as Effort
from rlflow.cost.evaluator import Evaluator
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.trajectory.record import Step, Trajectory

OnProgress = Callable[[float, str], None]
"""Called with the fraction done (0 to 1) and a line of text."""


def never() -> bool:
    return False


@dataclass(frozen=True)
class Budget:
    """A limit on time, on expansions and on rewrites; None is no limit.

    An expansion looks at all rewrites of one graph, an evaluation carries one out, in a graph or in an e-graph; the
    expansion in which rewrites run out goes on to its end. The time is over, too, as soon as `is_called_off` says
    so, which is asked again and again.
    """

    time_s: float | None = None
    expansions: int | None = None
    rewrites: int | None = None
    is_called_off: Callable[[], bool] = never

    def __post_init__(self) -> None:
        if self.time_s is not None and not self.time_s > 0:
            raise InputError(f"a budget must be positive, not {self.time_s} s")
        for counted in ("expansions", "rewrites"):
            limit = getattr(self, counted)
            if limit is not None and limit < 1:
                raise InputError(f"a budget must be positive, not {limit} {counted}")

    @property
    def is_endless(self) -> bool:
        """True if nothing ever ends it, not even whoever might call it off."""
        limits = (self.time_s, self.expansions, self.rewrites)
        return all(limit is None for limit in limits) and self.is_called_off is never

    def fraction(self, elapsed_s: float, expansions: int, rewrites: int) -> float:
        """Return the fraction of the budget that is used after so much of each, 1 at most."""
        used = ((elapsed_s, self.time_s), (expansions, self.expansions), (rewrites, self.rewrites))
        return min(1.0, max(spent / limit if limit else 0.0 for spent, limit in used))


@dataclass(frozen=True)
class Milestone:
    """The effort after which a graph became the cheapest so far; the first is the start, after none."""

    rewrites: int
    prices_measured: int
    wall_time_s: float
    runtime_ms: float


@dataclass(frozen=True)
class Optimality:
    """The distance of what equality saturation ended with from the cheapest graph that its last e-graph holds.

    `proven` says that there is none beyond the relative gap of the extraction. `bound_ms` is a proven lower bound, and
    `limited_by` what ended the e-graph's growth or its extraction: "nodes", "passes", "uses", "time", "solver", or
    "" if neither had to be ended.
    """

    proven: bool
    bound_ms: float
    gap_percent: float
    limited_by: str


@dataclass(frozen=True)
class OptimisationResult:
    """`best` is the cheapest graph met, not the last. `optimality` is known of methods that solve for it."""

    best: Graph
    best_ms: float
    start_ms: float
    trajectory: Trajectory
    wall_time_s: float
    effort: Effort
    milestones: tuple[Milestone, ...] = ()
    optimality: Optimality | None = None
    expansions: int = 0

    @property
    def improvement_percent(self) -> float:
        return 100.0 * (self.start_ms - self.best_ms) / self.start_ms if self.start_ms else 0.0


class Method(Protocol):
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


class Option(NamedTuple):
    """A rewrite, and the exact price of the graph after it."""

    action: Location
    match: Match
    runtime_ms: float


@dataclass
class Workspace:
    """One optimisation: rewriting and pricing, with the effort, the milestones and the clock.

    Searches that follow each other share one. `budget` is that of the search that runs; its time counts from the begin,
    and so do its expansions.
    """

    evaluator: Evaluator
    library_hash: str
    start: State
    budget: Budget
    expansions: int = 0
    milestones: list[Milestone] = field(default_factory=list)
    optimality: Optimality | None = None
    started: float = field(default_factory=time.perf_counter)

    @classmethod
    def begin(
        cls, graph: Graph, rewriter: Rewriter, cost_model: CostModel, library_hash: str, budget: Budget
    ) -> Workspace:
        """Price the graph, which is the first milestone."""
        started, evaluator = time.perf_counter(), Evaluator(rewriter, cost_model)
        work = cls(evaluator, library_hash, State(graph, evaluator.runtime_ms(graph)), budget, started=started)
        work._note(work.start)
        return work

    @property
    def rewriter(self) -> Rewriter:
        return self.evaluator.rewriter

    @property
    def effort(self) -> Effort:
        """The effort so far."""
        return self.evaluator.effort

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self.started

    @property
    def is_out_of_time(self) -> bool:
        time_s = self.budget.time_s
        return self.budget.is_called_off() or (time_s is not None and self.elapsed_s >= time_s)

    @property
    def _deadline(self) -> float | None:
        return None if self.budget.time_s is None else self.started + self.budget.time_s

    @property
    def is_spent(self) -> bool:
        used = ((self.expansions, self.budget.expansions), (self.effort.rewrites, self.budget.rewrites))
        return self.is_out_of_time or any(limit is not None and spent >= limit for spent, limit in used)

    @property
    def expansions_left(self) -> int | None:
        """The expansions that are left of a budget that is not spent; None if there is no limit."""
        return None if self.budget.expansions is None else self.budget.expansions - self.expansions

    @property
    def rewrites_left(self) -> int | None:
        """The rewrites that are left of a budget, 0 where more were made; None if there is no limit."""
        most = self.budget.rewrites
        return None if most is None else max(0, most - self.effort.rewrites)

    @property
    def fraction(self) -> float:
        """The fraction of the budget that is used."""
        return self.budget.fraction(self.elapsed_s, self.expansions, self.effort.rewrites)

    def actions(self, state: State) -> list[Location]:
        counts = self.rewriter.matches(state.graph).counts
        return [Location(rule, i) for rule, count in enumerate(counts) for i in range(count)]

    def options(self, state: State, wanted: Callable[[Match], bool] = lambda match: True) -> Iterator[Option]:
        """Yield every wanted rewrite of a graph, in the order of rules and locations, until the time is over.

        Each call is an expansion; what is not wanted is not priced.
        """
        self.expansions += 1
        found = self.rewriter.matches(state.graph).found()
        places = (
            (Location(rule, location), match)
            for rule, matches in found
            for location, match in enumerate(matches)
            if wanted(match)
        )
        for action, match in self.evaluator.foreseen(state.graph, places, self._deadline):
            if self.is_out_of_time:
                return
            yield Option(action, match, self.evaluator.runtime_after_ms(state.graph, match))

    def take(self, state: State, option: Option) -> State:
        """Carry out a rewrite that was priced."""
        graph = self.evaluator.rewritten(state.graph, option.match)
        return self._note(State(graph, self.evaluator.confirmed_ms(graph), state, option.action))

    def step(self, state: State, action: Location) -> State:
        """Carry out one rewrite and price it."""
        match = self.rewriter.matches(state.graph)[action.rule][action.location]
        graph = self.evaluator.rewritten(state.graph, match)
        return self._note(State(graph, self.evaluator.runtime_ms(graph), state, action))

    def arrived(self, state: State, action: Location, graph: Graph) -> State:
        """Price the graph to which a rewrite has led that was carried out elsewhere, and count both."""
        self.evaluator.count(Effort(rewrites=1))
        return self._note(State(graph, self.evaluator.runtime_ms(graph), state, action))

    def arrived_again(self, state: State, action: Location, graph: Graph) -> State:
        """Price the graph to which a rewrite has led that `join` has counted; neither is counted once more."""
        return self._note(State(graph, self.evaluator.confirmed_ms(graph), state, action))

    def _note(self, state: State) -> State:
        """Note a state as a milestone if it is the cheapest so far."""
        if not self.milestones or state.runtime_ms < self.milestones[-1].runtime_ms:
            effort = self.effort
            self.milestones.append(Milestone(effort.rewrites, effort.prices_measured, self.elapsed_s, state.runtime_ms))
        return state

    def join(self, result: OptimisationResult) -> list[Milestone]:
        """Count the effort and the expansions of another search from the same start, which has just ended, as ours.

        Return its milestones beyond ours, counted from our begin. They are ours only if its graphs can be reached here.
        """
        before, passed_s = self.effort, self.elapsed_s - result.wall_time_s
        self.evaluator.count(result.effort)
        self.expansions += result.expansions
        return [
            replace(
                reached,
                rewrites=before.rewrites + reached.rewrites,
                prices_measured=before.prices_measured + reached.prices_measured,
                wall_time_s=passed_s + reached.wall_time_s,
            )
            for reached in result.milestones
            if reached.runtime_ms < self.milestones[-1].runtime_ms
        ]

    def result(self, best: State) -> OptimisationResult:
        """Return the result whose best graph is `best`, with the way that leads there."""
        return OptimisationResult(
            best=best.graph,
            best_ms=best.runtime_ms,
            start_ms=self.start.runtime_ms,
            trajectory=self.trajectory(self.start, best),
            wall_time_s=self.elapsed_s,
            effort=self.effort,
            milestones=tuple(self.milestones),
            optimality=self.optimality,
            expansions=self.expansions,
        )

    def trajectory(self, start: State, end: State) -> Trajectory:
        """Return the way from a state to one that was reached from it."""
        path = end.path()
        path = path[path.index(start) :]
        steps = [
            Step(
                rule=self.rewriter.rules[state.action.rule].id,
                location=state.action.location,
                hash=state.hash,
                runtime_ms=state.runtime_ms,
                reward=100.0 * (before.runtime_ms - state.runtime_ms) / (start.runtime_ms or 1.0),
            )
            for before, state in pairwise(path)
            if state.action is not None
        ]
        return Trajectory(
            start.hash,
            start.runtime_ms,
            self.evaluator.cost_model.name,
            self.library_hash,
            tuple(steps),
            matching=self.rewriter.matching,
        )
