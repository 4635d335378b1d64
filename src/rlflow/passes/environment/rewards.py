"""Rewards of the pass-ordering environment, by name (docs/pass_ordering.md).

All are in percent of the start. All but `operations` telescope: an episode's rewards add up to what it has gained.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rlflow.errors import InputError
from rlflow.passes import search
from rlflow.passes.backend import Facts
from rlflow.passes.transitions import Transitions


@dataclass(frozen=True)
class PassTransition:
    """One step of an episode: the program that it began with, those before and after the step, and if it has ended."""

    start: Facts
    before: Facts
    after: Facts
    ended: bool


@dataclass(frozen=True)
class TimingConfig:
    """The timing behind the reward `run_time`: rounds of fresh runs in turns, and runs in a round."""

    rounds: int = 5
    runs: int = 10
    seed: int = 0


@dataclass(frozen=True)
class PassReward:
    """The reward of a name, for the life of an environment; what it has compiled and timed is remembered."""

    name: str
    transitions: Transitions
    timing: TimingConfig = field(default_factory=TimingConfig)
    _known: dict[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in REWARDS:
            raise InputError(f"there is no pass-ordering reward {self.name!r}: choose one of {', '.join(REWARDS)}")

    def __call__(self, step: PassTransition) -> float:
        """The reward of a step. `PassError` if the compiler fails to compile or to time a program."""
        return REWARDS[self.name](self, step)

    def best_baseline(self, start: Facts) -> float:
        """The fewest operations of the default pipeline and of the simplifiers' fixpoint."""
        known = self.transitions.backend.catalogue()
        return self._once(
            "baseline",
            start.key,
            lambda: min(
                search.sequence(self.transitions, start, [known.default]).facts.operations,
                search.fixpoint(self.transitions, start, known.simplifiers).facts.operations,
            ),
        )

    def compiled(self, facts: Facts) -> float:
        """Operations that are left of a program when it is compiled to be run."""
        backend = self.transitions.backend
        return self._once(
            "compiled", facts.key, lambda: backend.compiled_operations(self.transitions.payload(facts.key))
        )

    def saved_percent(self, start: Facts, after: Facts) -> float:
        """The run time saved, in percent of the start's; 0 if it is within what runs of the two scatter."""
        if start.key == after.key:
            return 0.0
        return self._once(start.key, after.key, lambda: self._measured(start, after))

    def _once(self, what: str, key: str, compute: Callable[[], float]) -> float:
        if (what, key) not in self._known:
            self._known[what, key] = compute()
        return self._known[what, key]

    def _measured(self, start: Facts, after: Facts) -> float:
        payloads = [self.transitions.payload(facts.key) for facts in (start, after)]
        timing = self.timing
        times = self.transitions.backend.times_ms(payloads, rounds=timing.rounds, runs=timing.runs, seed=timing.seed)
        # Rounds are compared one by one: a machine drifts from round to round.
        saved = [100.0 * (1.0 - new / old) for old, new in zip(times[0], times[1], strict=True)]
        clear = min(saved) > 0.0 or max(saved) < 0.0
        return statistics.median(saved) if clear else 0.0


def operations(_: PassReward, step: PassTransition) -> float:
    """The paper's: the negative operation count, in percent of the start's."""
    return -100.0 * step.after.operations / max(step.start.operations, 1)


def delta(_: PassReward, step: PassTransition) -> float:
    """Operations that the step has removed, in percent of the start's."""
    return _percent(step.before.operations, step.after.operations, step.start.operations)


def of_baseline(reward: PassReward, step: PassTransition) -> float:
    """Operations that the step has removed, in percent of what the best baseline removes; 0 if that removes none."""
    removed = step.start.operations - reward.best_baseline(step.start)
    return 100.0 * (step.before.operations - step.after.operations) / removed if removed > 0 else 0.0


def bytes_accessed(_: PassReward, step: PassTransition) -> float:
    """Bytes that the program accesses no more, in percent of the start's."""
    costs = [facts.cost.bytes_accessed for facts in (step.before, step.after, step.start)]
    return _percent(*costs)


def compiled(reward: PassReward, step: PassTransition) -> float:
    """Operations of the compiled program that are gone, in percent of the compiled start's."""
    if step.before.key == step.after.key:
        return 0.0
    return _percent(*(reward.compiled(facts) for facts in (step.before, step.after, step.start)))


def run_time(reward: PassReward, step: PassTransition) -> float:
    """0 until the end, then the measured run time saved, in percent of the start's; noise is no gain."""
    return reward.saved_percent(step.start, step.after) if step.ended else 0.0


def _percent(before: float, after: float, start: float) -> float:
    return 100.0 * (before - after) / start if start else 0.0


REWARDS: Mapping[str, Callable[[PassReward, PassTransition], float]] = {
    "operations": operations,
    "delta": delta,
    "of_baseline": of_baseline,
    "bytes": bytes_accessed,
    "compiled": compiled,
    "run_time": run_time,
}
