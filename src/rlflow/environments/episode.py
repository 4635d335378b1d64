"""One episode of a process: choices are carried out and rewarded, until one terminates or the horizon cuts it off.

episode = Episode(process, reward_of(RewardConfig()), max_steps=30, visited=[process.start()])
outcome = episode.act(choice)            None terminates; a choice that there is not changes nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Generic, NamedTuple

from rlflow.environments.rewards import Reward
from rlflow.environments.transition import Transition
from rlflow.errors import InputError
from rlflow.processes.process import C, Process, S
from rlflow.trajectory.record import Step


class Outcome(NamedTuple):
    """The reward of an action, in percent of the start, and how the episode goes on; `valid`: it was not refused."""

    reward: float
    terminated: bool
    truncated: bool
    valid: bool

    @property
    def ended(self) -> bool:
        return self.terminated or self.truncated


class Episode(Generic[S, C]):
    """An episode on its way; a refused action counts towards the horizon, or it might never end.

    visited: the states so far, the present one last; rewards are in percent of the first one's price. taken: the
    choices so far, None for a refused one.
    """

    def __init__(self, process: Process[S, C], reward: Reward, max_steps: int, visited: list[S]) -> None:
        self.process, self.reward, self.max_steps = process, reward, max_steps
        self.visited = visited
        self.taken: list[C | None] = []
        self._earned: list[float] = []

    @property
    def state(self) -> S:
        """The present state."""
        return self.visited[-1]

    def act(self, choice: C | None) -> Outcome:
        """Carry out a choice, or terminate for None."""
        if choice is None:
            earned = self.reward(Transition([*self.visited, self.state], ended=True))
            return Outcome(earned, terminated=True, truncated=False, valid=True)
        truncated = len(self.taken) + 1 >= self.max_steps
        if choice not in self.process.choices(self.state):
            self.take(None)
            return Outcome(self.reward.config.invalid, terminated=False, truncated=truncated, valid=False)
        self.take(choice)
        self._earned.append(self.reward(Transition(self.visited, truncated)))
        return Outcome(self._earned[-1], terminated=False, truncated=truncated, valid=True)

    def take(self, choice: C | None) -> None:
        """Carry out a choice without a reward."""
        self.taken.append(choice)
        if choice is not None:
            self.visited.append(self.process.step(self.state, choice))

    def undo(self) -> None:
        """Take back the last choice, refused or not. `InputError` where the episode began."""
        if not self.taken:
            raise InputError("there is no step to undo: this is where the episode began")
        if self.taken.pop() is not None:
            self.visited.pop()
            del self._earned[len(self.visited) - 1 :]

    def fork(self) -> Episode[S, C]:
        """Return the same episode, to go on in another way from here."""
        other = copy(self)
        other.visited, other.taken, other._earned = [*self.visited], [*self.taken], [*self._earned]
        return other

    def steps(self) -> Iterator[Step]:
        """Yield the rewrites as trajectories record them. A choice's reward stands at its last rewrite, else 0."""
        rules = self.process.evaluator.rewriter.rules
        chosen = [choice for choice in self.taken if choice is not None]
        for before, after, choice, reward in zip(self.visited, self.visited[1:], chosen, self._earned, strict=False):
            way = self.process.way(before, choice, after)
            for number, (place, led_to) in enumerate(way, start=1):
                paid = reward if number == len(way) else 0.0
                yield Step(rules[place.rule].id, place.location, led_to.hash, led_to.runtime_ms, paid)
