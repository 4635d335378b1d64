"""The reward that is measured: graphs are exported and timed in ONNX Runtime against the start of their episode.

    reward = EndToEnd(RewardConfig("end_to_end", every=5))
    reward(Transition([start, *states, state], ended=False))      percent of the start's latency; 0.0 until step 5

A step is measured if `every` divides its number or it ends the episode; the end alone if `every` is None. What that
says counts if it differs by more than noise from what counted before (`runtime.timing.savings`); otherwise the reward
is 0, and what counted before goes on counting. A graph is timed once in the life of the object, its start never.

The invariant: with nothing `between`, the rewards of an episode add up to the saving that counts at its end. What
counts follows from the states and from what is remembered, so that episodes side by side share one object.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import Any

from rlflow.environments.reward_config import RewardConfig
from rlflow.environments.transition import Transition
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import to_onnx
from rlflow.processes.process import ProcessState
from rlflow.runtime.timing.savings import NO_SAVING, Saving, measured_saving, tells_apart

SavingOf = Callable[[Graph, Graph, RewardConfig], Saving]
"""A function that tells what the second graph saves against the first."""


def exported_saving(start: Graph, graph: Graph, config: RewardConfig) -> Saving:
    """Export both graphs and time them in rounds of fresh sessions; their files are gone afterwards."""
    return measured_saving(
        to_onnx(start),
        to_onnx(graph),
        setting=config.setting,
        rounds=config.rounds,
        runs_per_round=config.runs_per_round,
        threads=config.threads,
    )


def latency_saved(timed: EndToEnd | None, transition: Transition) -> float:
    """The change of the saving that counts, as rollouts have it: NaN after a step that is not measured."""
    measured = None if timed is None else timed.measured(transition)
    return math.nan if measured is None else measured


class EndToEnd:
    """The measured reward of one environment, and all that was measured for it."""

    def __init__(self, config: RewardConfig, saving_of: SavingOf = exported_saving) -> None:
        self.config, self._saving_of = config, saving_of
        self._known: dict[tuple[str, str], Saving] = {}
        self._seconds = 0.0
        self._compared = self._noise = 0

    def __call__(self, transition: Transition) -> float:
        """The change of the saving that counts, if this step is measured; `config.between` if it is not."""
        measured = self.measured(transition)
        return self.config.between if measured is None else measured

    def measured(self, transition: Transition) -> float | None:
        """The change of the saving that counts since it was last measured; None if this step is not."""
        if not (transition.ended or self._is_measured(transition.step)):
            return None

        before = self._counting(transition.states[:-1])
        after = self._saving(transition.states[0], transition.states[-1])
        if after == before:
            return 0.0
        self._compared += 1
        if tells_apart(before, after):
            return after.percent - before.percent
        self._noise += 1
        return 0.0

    def figures(self) -> dict[str, float]:
        """The graphs that were timed and the seconds that it took.

        And how many rewards compared two graphs, and how many of these were 0 because of noise.
        """
        return {
            "measurements": len(self._known),
            "measuring_s": self._seconds,
            "rewards_measured": self._compared,
            "rewards_noise": self._noise,
        }

    def state_dict(self) -> dict[str, Any]:
        """All that was measured, and what that took."""
        known = [[*hashes, *astuple(saving)] for hashes, saving in self._known.items()]
        return {"known": known, "seconds": self._seconds, "compared": self._compared, "noise": self._noise}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        self._known = {(start, graph): Saving(*saving) for start, graph, *saving in state["known"]}
        self._seconds, self._compared, self._noise = state["seconds"], state["compared"], state["noise"]

    def _is_measured(self, step: int) -> bool:
        return self.config.every is not None and step % self.config.every == 0

    def _counting(self, states: Sequence[ProcessState]) -> Saving:
        """The saving that counts after these states, all measured ones of which are remembered."""
        counting = NO_SAVING
        for step, state in enumerate(states):
            if self._is_measured(step):
                found = self._saving(states[0], state)
                counting = found if tells_apart(counting, found) else counting
        return counting

    def _saving(self, start: ProcessState, state: ProcessState) -> Saving:
        """Measure what a graph saves, unless that is known."""
        key = structural_hash(start.graph), structural_hash(state.graph)
        if key[0] == key[1]:
            return NO_SAVING
        if key not in self._known:
            started = time.perf_counter()
            self._known[key] = self._saving_of(start.graph, state.graph, self.config)
            self._seconds += time.perf_counter() - started
        return self._known[key]
