"""A step of an episode as a reward sees it: the states so far, of which each is a graph and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlflow.cost.base import Cost
from rlflow.processes.process import ProcessState


@dataclass(frozen=True)
class Transition:
    """Step T of an episode.

    states: T + 1 of them, the start first, the one after this step last; terminate repeats the state that it ends in,
    and actions that were refused have none. ended: true if the episode is over, for whatever reason.
    """

    states: Sequence[ProcessState]
    ended: bool

    @property
    def step(self) -> int:
        """The number of this step, from 1."""
        return len(self.states) - 1

    @property
    def start(self) -> Cost:
        return self.states[0].cost

    @property
    def before(self) -> Cost:
        return self.states[-2].cost

    @property
    def after(self) -> Cost:
        return self.states[-1].cost
