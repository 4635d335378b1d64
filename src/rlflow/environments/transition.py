"""A step of an episode as a reward sees it: the states so far, of which each is a graph and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlflow.processes.process import ProcessState
from rlflow.step_reward import StepChange


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
    def change(self) -> StepChange:
        """The change of prices and memory accesses, in percent of the start's; where that is 0, nothing changes."""
        start, before, after = (self.states[place].cost for place in (0, -2, -1))
        return StepChange(
            saved=_percent(before.runtime_ms - after.runtime_ms, start.runtime_ms),
            cost=_percent(after.runtime_ms, start.runtime_ms),
            improvement=_percent(start.runtime_ms - after.runtime_ms, start.runtime_ms),
            ended=self.ended,
            memory_saved=_percent(before.bytes_moved - after.bytes_moved, start.bytes_moved),
        )


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole else 0.0
