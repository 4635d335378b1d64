"""Episodes over candidates on a real graph, side by side: observations are names of states in a policy's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlflow.agents.candidates.controller import NAMES
from rlflow.agents.candidates.memory import CandidateMemory, PriceScale
from rlflow.agents.real_episodes import RealEpisodes
from rlflow.cost.effort import Effort
from rlflow.environments.candidate_process import CandidateProcess, CandidateState
from rlflow.environments.episode import Episode
from rlflow.environments.process import Process
from rlflow.environments.rewards import Reward
from rlflow.rules.matching.rewriter import Location

_GOLDEN = 0.618  # of the way further with each episode: places that are spread evenly, however many there are


class NamedCandidates(Process[CandidateState, int]):
    """A process whose states are observed by their names, (1,) int64, in a memory that keeps them."""

    def __init__(self, process: CandidateProcess, memory: CandidateMemory, scale: PriceScale | None) -> None:
        self.process, self.memory, self.scale = process, memory, scale
        self.evaluator = process.evaluator

    def observe(self, state: CandidateState) -> np.ndarray:
        return np.array([self.memory.keep(state, self.scale)], np.int64)

    def start(self) -> CandidateState:
        return self.process.start()

    def choices(self, state: CandidateState) -> range:
        return self.process.choices(state)

    def step(self, state: CandidateState, choice: int) -> CandidateState:
        return self.process.step(state, choice)

    def location(self, state: CandidateState, choice: int) -> Location:
        return self.process.location(state, choice)

    def savings(self, state: CandidateState, choices: Sequence[int]) -> np.ndarray:
        return self.process.savings(state, choices)


class CandidateEpisodes(RealEpisodes[CandidateState]):
    """B episodes of a process. Action k is the k-th candidate, K terminates.

    They begin at the original, but for a share of `greedy_starts`, which begin at states on greedy search's way, one
    after the other: what is to be learned lies beyond its end, and is rarely met from the original.

    Rewards are in percent of the original; by price, unless another reward is given.
    """

    def __init__(
        self,
        process: CandidateProcess,
        memory: CandidateMemory,
        scale: PriceScale | None,
        num_envs: int,
        greedy_starts: float = 0.0,
        reward: Reward | None = None,
    ) -> None:
        self.greedy_starts = greedy_starts
        self._greedy = process.greedy_states() if greedy_starts else [process.start()]
        config = process.config
        super().__init__(
            NamedCandidates(process, memory, scale),
            num_envs=num_envs,
            max_steps=config.max_steps,
            observed=NAMES,
            max_choices=config.max_candidates,
            reward=reward,
        )

    def begin(self) -> None:
        """Begin all episodes."""
        self._begun = 0
        super().begin()

    def new_episode(self) -> Episode[CandidateState, int]:
        """Begin an episode."""
        self._begun += 1
        on_way = int(self._begun * self.greedy_starts)
        is_on_way = on_way > int((self._begun - 1) * self.greedy_starts)
        return self._after(int(on_way * _GOLDEN % 1.0 * len(self._greedy)) if is_on_way else 0)

    def _after(self, steps: int) -> Episode[CandidateState, int]:
        """Begin an episode after so many steps of greedy search."""
        return self.episode_after(self._greedy[: steps + 1])

    def state_dict(self) -> dict[str, Any]:
        """Return where each episode began, what it took, and the rewrites, those of candidates included."""
        accepted = [sum(choice is not None for choice in episode.taken) for episode in self._episodes]
        on_way = [len(episode.visited) - steps - 1 for episode, steps in zip(self._episodes, accepted, strict=True)]
        begun = {"on_way": on_way, "begun": self._begun}
        return super().state_dict() | begun | {"process_rewrites": self.process.evaluator.effort.rewrites}

    def begin_as(self, state: dict[str, Any]) -> None:
        """Begin the episodes that `state_dict` tells of."""
        self._episodes = [self._after(steps) for steps in state["on_way"]]
        self._begun = state["begun"]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned, with the states of all episodes in the memory."""
        super().load_state_dict(state)
        self._observations()
        tally = self.process.evaluator.tally
        tally.count(Effort(rewrites=state["process_rewrites"] - tally.effort.rewrites))
