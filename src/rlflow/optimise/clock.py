"""The time of one optimisation: a deadline that its phases share, and that an interrupt brings forward.

The budget is the wall time of everything, from reading a model to writing one. A `Deadline` is made when that begins
and handed down. A phase gets a deadline of its own, a part of what is left when it begins among the phases that are to
come; so what one leaves over goes on to the next. Of 60 s, with shares of 3 for judging, 5 for searching and 4 for the
rest,

    whole = Deadline.after(60.0)
    judging = whole.part(3 / 12)        may take 15 s; it takes 6
    searching = whole.part(5 / 9)       may take 30 of the other 54

Ctrl-C ends the phase that runs and those to come: of an interrupted deadline nothing is left.

Invariant: no part ends later than the whole, and a deadline never changes; two that are asked at the same time by the
same clock agree on what is left.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace

from rlflow.errors import InputError
from rlflow.method import Budget, never


@dataclass(frozen=True)
class Deadline:
    """A moment by a clock that tells seconds; `is_interrupted` is asked whether the time was called off."""

    end_s: float = math.inf
    now_s: Callable[[], float] = time.perf_counter
    is_interrupted: Callable[[], bool] = never

    @classmethod
    def after(
        cls,
        budget_s: float | None,
        *,
        since_s: float | None = None,
        now_s: Callable[[], float] = time.perf_counter,
        is_interrupted: Callable[[], bool] = never,
    ) -> Deadline:
        """Return the deadline so many seconds from a moment of the clock, or from now; None is no limit.

        `InputError` if they are not positive.
        """
        if budget_s is not None and not budget_s > 0:
            raise InputError(f"a budget must be positive, not {budget_s} s")
        begin_s = now_s() if since_s is None else since_s
        return cls(math.inf if budget_s is None else begin_s + budget_s, now_s, is_interrupted)

    @property
    def left_s(self) -> float:
        """Seconds left: at least 0, infinite without a limit."""
        return 0.0 if self.is_interrupted() else max(0.0, self.end_s - self.now_s())

    @property
    def is_over(self) -> bool:
        return not self.left_s

    def part(self, share: float, least_s: float = 0.0) -> Deadline:
        """Return the deadline at which this share (0 to 1) of what is left now is spent, or `least_s` if that is more;
        at the latest this one.
        """
        return replace(self, end_s=min(self.end_s, self.now_s() + max(share * self.left_s, least_s)))

    def before(self, reserve_s: float) -> Deadline:
        """Return the deadline that leaves so many seconds for what comes after it."""
        return replace(self, end_s=self.end_s - reserve_s)

    def budget(self) -> Budget:
        """Return what a search may take that begins now; at least a moment, since it has to return something."""
        left_s = self.left_s
        return Budget(None if math.isinf(left_s) else max(left_s, _MOMENT_S), is_called_off=self.is_interrupted)


_MOMENT_S = 1e-3
NO_DEADLINE = Deadline()


class Stopwatch:
    """Tells what the time of a run went to: each phase lasts until the next one begins, and may begin again.

    The first one is reading, and began at `since_s` by the clock, or begins now.
    """

    def __init__(self, since_s: float | None = None, now_s: Callable[[], float] = time.perf_counter) -> None:
        self._began, self._now_s = [("reading", now_s() if since_s is None else since_s)], now_s
        self._answered_s: float | None = None

    def begin(self, phase: str) -> None:
        self._began.append((phase, self._now_s()))

    def answer(self) -> None:
        """Tell that there is an answer now; the first time counts."""
        if self._answered_s is None:
            self._answered_s = self._now_s()

    def told(self) -> TimeSpent:
        """Return what is known now, which ends the last phase."""
        phases: dict[str, float] = {}
        now_s = self._now_s()
        ends = [began_s for _, began_s in self._began[1:]]
        for (phase, began_s), end_s in zip(self._began, [*ends, now_s], strict=True):
            phases[phase] = phases.get(phase, 0.0) + end_s - began_s
        answered_s = now_s if self._answered_s is None else self._answered_s
        return TimeSpent(phases, answered_s - self._began[0][1])


@dataclass(frozen=True)
class TimeSpent:
    """The seconds of each phase, in their order, and those until a model had been checked that could be delivered, or
    until it was known that the original stays.
    """

    phases: Mapping[str, float] = field(default_factory=dict)
    first_answer_s: float = 0.0

    def __str__(self) -> str:
        phases = ", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in self.phases.items())
        return f"{phases}; the first answer was known after {self.first_answer_s:.1f} s"


@dataclass(frozen=True)
class Shares:
    """The shares of the phases in the time, in their order and in proportion; each is a positive number.

    The check of the result has none: it is known beforehand what it takes, about as long as judging the original did,
    and so long is kept free. So is what timing a large model takes; the share is for small ones.
    """

    judging: float = 0.65
    searching: float = 0.4
    measuring: float = 0.15
    timing: float = 0.1

    def __post_init__(self) -> None:
        for entry in fields(self):
            if not getattr(self, entry.name) > 0:
                raise InputError(f"the share of {entry.name} must be positive, not {getattr(self, entry.name)}")

    def of(self, phase: str) -> float:
        """Return the phase's part of what is left when it begins, among it and the phases after it."""
        names = [entry.name for entry in fields(self)]
        to_come = [getattr(self, name) for name in names[names.index(phase) :]]
        return to_come[0] / sum(to_come)
