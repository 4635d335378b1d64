"""The interface of every method of optimising a graph, and the bookkeeping that the methods share.

A method (`Method`) takes a graph and a `Budget` and gives an `OptimisationResult`: the cheapest graph that it met,
and the steps that lead there. Inside, a `Workspace` prices rewrites and carries them out, and a `Ledger` counts what
that takes and ends it:

    work = Workspace.begin(graph, rewriter, cost_model, library.hash, Ledger(budget))
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
from typing import NamedTuple, Protocol, TypeVar

from rlflow.cost.base import CostModel
from rlflow.cost.effort import Effort as Effort
from rlflow.cost.effort import Tally
from rlflow.cost.evaluator import Evaluator
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.trajectory.record import Step, Trajectory

Amount = TypeVar("Amount", int, float)

OnProgress = Callable[[float, str], None]
"""Called with the fraction done (0 to 1) and a line of text."""


def never() -> bool:
    return False


@dataclass(frozen=True)
class Budget:
    """A limit on time, on expansions and on rewrites; None is no limit.

    An expansion looks at all rewrites of one graph. Rewrites are those carried out, in a graph or in an e-graph; the
    expansion in which they run out goes on to its end. The time is over, too, as soon as `is_called_off` says so, which
    is asked again and again.
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
        """True if nothing ever ends it, not even a call to `is_called_off`."""
        limits = (self.time_s, self.expansions, self.rewrites)
        return all(limit is None for limit in limits) and self.is_called_off is never


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
    `limited_by` what ended the e-graph's growth or its extraction: "nodes", "passes", "uses", "time", "solver", "depth"
    if its graph was one in short, or "" if neither had to be ended.
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
    """A graph on the way, and how it was reached: `parent` by `action`.

    reward: what the environment of an episode paid for the action; None: what it saves, in percent of the start.
    """

    graph: Graph
    runtime_ms: float
    parent: State | None = None
    action: Location | None = None
    reward: float | None = None

    @cached_property
    def hash(self) -> str:
        return structural_hash(self.graph)

    def leave_behind(self, start: State) -> None:
        """Let the graphs on the way here from `start` forget what was derived of them, but for their hashes.

        For ways of many rewrites. Each hash is cheap as long as that is known of the graph before.
        """
        _ = start.hash
        for before, after in pairwise(self.path(start)):
            _ = after.hash
            before.graph.forget()

    def path(self, start: State | None = None) -> list[State]:
        """From the start to here, or from a later state on the way."""
        backwards = [self]
        while backwards[-1] is not start and backwards[-1].parent is not None:
            backwards.append(backwards[-1].parent)
        if start is not None and backwards[-1] is not start:
            raise ValueError("the way to a state does not lead through the one that it is asked from")
        return backwards[::-1]

    @property
    def depth(self) -> int:
        return len(self.path()) - 1


class Option(NamedTuple):
    """A rewrite, and the exact price of the graph after it."""

    action: Location
    match: Match
    runtime_ms: float


@dataclass(frozen=True)
class Ledger:
    """The account of a method: what it may spend, and what it has spent and reached since it began.

    A search inside another one has a `child`, which differs in its limits alone: clock, counts and milestones are those
    of the whole. So `limits`, too, count from the begin of the whole.
    """

    limits: Budget
    tally: Tally = field(default_factory=Tally)
    milestones: list[Milestone] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    @property
    def effort(self) -> Effort:
        """The effort so far."""
        return self.tally.effort

    @property
    def expansions(self) -> int:
        """The expansions so far."""
        return self.tally.expansions

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self.started

    @property
    def is_out_of_time(self) -> bool:
        return self.limits.is_called_off() or self.time_left_s == 0

    @property
    def is_spent(self) -> bool:
        return self.is_out_of_time or 0 in (self.expansions_left, self.rewrites_left)

    @property
    def time_left_s(self) -> float | None:
        """The seconds that are left, at least 0; None if there is no limit."""
        return _left(self.limits.time_s, self.elapsed_s)

    @property
    def expansions_left(self) -> int | None:
        """The expansions that are left, at least 0; None if there is no limit."""
        return _left(self.limits.expansions, self.expansions)

    @property
    def rewrites_left(self) -> int | None:
        """The rewrites that are left, at least 0; None if there is no limit."""
        return _left(self.limits.rewrites, self.effort.rewrites)

    @property
    def deadline(self) -> float | None:
        """The moment of `time.perf_counter` at which the time is over; None if there is no limit."""
        return None if self.limits.time_s is None else self.started + self.limits.time_s

    @property
    def fraction(self) -> float:
        """The fraction of the nearest limit that is used, 1 at most."""
        time_s, expansions, rewrites = self.limits.time_s, self.limits.expansions, self.limits.rewrites
        used = ((self.elapsed_s, time_s), (self.expansions, expansions), (self.effort.rewrites, rewrites))
        return min(1.0, max(spent / limit if limit else 0.0 for spent, limit in used))

    def child(
        self, *, time_s: float | None = None, expansions: int | None = None, rewrites: int | None = None
    ) -> Ledger:
        """Return the account of a search that may spend so much from now on, and no more than is left here."""
        limits = replace(
            self.limits,
            time_s=_limit(self.limits.time_s, self.elapsed_s, time_s),
            expansions=_limit(self.limits.expansions, self.expansions, expansions),
            rewrites=_limit(self.limits.rewrites, self.effort.rewrites, rewrites),
        )
        return replace(self, limits=limits)

    def part(self, share: float) -> Ledger:
        """Return the account of a search that may spend a share, from 0 to 1, of what is left here."""
        return self.child(
            time_s=None if self.time_left_s is None else share * self.time_left_s,
            expansions=_part(share, self.expansions_left),
            rewrites=_part(share, self.rewrites_left),
        )

    def note(self, runtime_ms: float) -> None:
        """Note a price as a milestone if it is the lowest so far."""
        if not self.milestones or runtime_ms < self.milestones[-1].runtime_ms:
            effort = self.effort
            self.milestones.append(Milestone(effort.rewrites, effort.prices_measured, self.elapsed_s, runtime_ms))


def _left(limit: Amount | None, spent: Amount) -> Amount | None:
    return None if limit is None else max(limit - spent, 0)


def _limit(limit: Amount | None, spent: Amount, more: Amount | None) -> Amount | None:
    """Return the nearer of a limit and the one that so much more leads to; a limit is positive, and None is none."""
    ends = [end for end in (limit, None if more is None else spent + more or 1) if end is not None]
    return min(ends, default=None)


def _part(share: float, left: int | None) -> int | None:
    return None if left is None else max(1, round(share * left))


@dataclass
class Workspace:
    """A search at work: rewriting and pricing, on an account.

    Searches that follow each other share one; what one of them may spend is limited by `within`.
    """

    evaluator: Evaluator
    library_hash: str
    start: State
    ledger: Ledger
    optimality: Optimality | None = None

    @classmethod
    def begin(
        cls, graph: Graph, rewriter: Rewriter, cost_model: CostModel, library_hash: str, ledger: Ledger
    ) -> Workspace:
        """Price the graph, which is the first milestone."""
        evaluator = Evaluator(rewriter, cost_model, ledger.tally)
        work = cls(evaluator, library_hash, State(graph, evaluator.runtime_ms(graph)), ledger)
        work.note(work.start)
        return work

    def within(self, ledger: Ledger) -> Workspace:
        """Return the same on the account of a search inside this one."""
        return replace(self, ledger=ledger)

    @property
    def rewriter(self) -> Rewriter:
        return self.evaluator.rewriter

    @property
    def is_out_of_time(self) -> bool:
        return self.ledger.is_out_of_time

    @property
    def is_spent(self) -> bool:
        return self.ledger.is_spent

    @property
    def fraction(self) -> float:
        """The fraction of the budget that is used."""
        return self.ledger.fraction

    def actions(self, state: State) -> list[Location]:
        counts = self.rewriter.matches(state.graph).counts
        return [Location(rule, i) for rule, count in enumerate(counts) for i in range(count)]

    def options(self, state: State, wanted: Callable[[Match], bool] = lambda match: True) -> Iterator[Option]:
        """Yield every wanted rewrite of a graph, in the order of rules and locations, until the time is over.

        Each call is an expansion; what is not wanted is not priced.
        """
        self.ledger.tally.expansions += 1
        found = self.rewriter.matches(state.graph).found()
        places = (
            (Location(rule, location), match)
            for rule, matches in found
            for location, match in enumerate(matches)
            if wanted(match)
        )
        for action, match in self.evaluator.foreseen(state.graph, places, self.ledger.deadline):
            if self.is_out_of_time:
                return
            yield self.option(state, action, match)

    def option(self, state: State, action: Location, match: Match) -> Option:
        """Price one rewrite of a graph."""
        return Option(action, match, self.evaluator.runtime_after_ms(state.graph, match))

    def take(self, state: State, option: Option) -> State:
        """Carry out a rewrite that was priced."""
        graph = self.evaluator.rewritten(state.graph, option.match)
        return self.note(State(graph, self.evaluator.confirmed_ms(graph), state, option.action))

    def step(self, state: State, action: Location) -> State:
        """Carry out one rewrite and price it."""
        match = self.rewriter.matches(state.graph)[action.rule][action.location]
        graph = self.evaluator.rewritten(state.graph, match)
        return self.note(State(graph, self.evaluator.runtime_ms(graph), state, action))

    def arrived(self, state: State, action: Location, graph: Graph) -> State:
        """Price the graph to which a rewrite has led that was carried out elsewhere, and count both."""
        self.ledger.tally.count(Effort(rewrites=1))
        return self.note(State(graph, self.evaluator.runtime_ms(graph), state, action))

    def arrived_again(self, state: State, action: Location, graph: Graph) -> State:
        """Price the graph to which a rewrite has led that was counted; neither is counted once more."""
        return self.note(State(graph, self.evaluator.confirmed_ms(graph), state, action))

    def note(self, state: State) -> State:
        """Note a state as a milestone if it is the cheapest so far."""
        self.ledger.note(state.runtime_ms)
        return state

    def result(self, best: State) -> OptimisationResult:
        """Return the result whose best graph is `best`, with the trajectory to it."""
        return OptimisationResult(
            best=best.graph,
            best_ms=best.runtime_ms,
            start_ms=self.start.runtime_ms,
            trajectory=self.trajectory(self.start, best),
            wall_time_s=self.ledger.elapsed_s,
            effort=self.ledger.effort,
            milestones=tuple(self.ledger.milestones),
            optimality=self.optimality,
            expansions=self.ledger.expansions,
        )

    def trajectory(self, start: State, end: State) -> Trajectory:
        """Return the way from a state to one that was reached from it."""
        steps = [
            Step(
                rule=self.rewriter.rules[state.action.rule].id,
                location=state.action.location,
                hash=state.hash,
                runtime_ms=state.runtime_ms,
                reward=_saved_percent(before, state, start) if state.reward is None else state.reward,
            )
            for before, state in pairwise(end.path(start))
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


def _saved_percent(before: State, after: State, start: State) -> float:
    return 100.0 * (before.runtime_ms - after.runtime_ms) / (start.runtime_ms or 1.0)
