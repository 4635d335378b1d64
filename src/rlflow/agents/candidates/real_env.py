"""Episodes over candidates on a real graph, side by side: observations are names of states in a policy's memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlflow.agents.candidates.controller import NAMES
from rlflow.agents.candidates.memory import CandidateMemory, PriceScale
from rlflow.agents.real_episodes import NOTHING, RealEpisodes
from rlflow.cost.effort import Effort
from rlflow.environments.candidate_process import CandidateProcess, CandidateState
from rlflow.environments.rewards import Reward, RewardConfig, reward_of

_GOLDEN = 0.618  # of the way further with each episode: places that are spread evenly, however many there are


@dataclass
class _Episode:
    """An episode on its way: the states that it went through, the last of which is its own, and what it took.

    begun: the number of steps on greedy search's way after which it began.
    """

    begun: int
    visited: list[CandidateState]
    taken: list[int] = field(default_factory=list)

    @property
    def state(self) -> CandidateState:
        return self.visited[-1]


class CandidateEpisodes(RealEpisodes[_Episode]):
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
        self.process, self.memory, self.scale, self.greedy_starts = process, memory, scale, greedy_starts
        self._way = process.greedy_way() if greedy_starts else [process.start()]
        self._begun = 0
        paid = reward or reward_of(RewardConfig())
        super().__init__(num_envs, process.config.max_steps, NAMES, process.config.max_candidates, paid)
        self.begin()

    def begin(self) -> None:
        """Begin all episodes."""
        self._begun = 0
        super().begin()

    def begin_as(self, state: dict[str, Any]) -> None:
        """Begin the episodes that `state_dict` tells of."""
        self._episodes = [self._episode(begun) for begun in state["on_way"]]
        self._begun = state["begun"]

    def new_episode(self) -> _Episode:
        """Begin an episode."""
        self._begun += 1
        on_way = int(self._begun * self.greedy_starts)
        is_on_way = on_way > int((self._begun - 1) * self.greedy_starts)
        return self._episode(int(on_way * _GOLDEN % 1.0 * len(self._way)) if is_on_way else 0)

    def _episode(self, begun: int) -> _Episode:
        return _Episode(begun, self._way[: begun + 1])

    def choice(self, episode: _Episode, action: int) -> int:
        """Return the candidate of an action."""
        return action if action < len(episode.state.candidates) else NOTHING

    def take(self, episode: _Episode, choice: int) -> CandidateState:
        """Make a candidate the current graph."""
        return self.process.step(episode.state, choice)

    def observation(self, episode: _Episode) -> np.ndarray:
        """(1,) int64: the name of the state."""
        return np.array([self.memory.keep(episode.state, self.scale)], np.int64)

    def state_dict(self) -> dict[str, Any]:
        """Return where each episode began, what it took, and the rewrites, those of candidates included."""
        begun = {"on_way": [episode.begun for episode in self._episodes], "begun": self._begun}
        return super().state_dict() | begun | {"process_rewrites": self.process.evaluator.effort.rewrites}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned, with the states of all episodes in the memory."""
        super().load_state_dict(state)
        self._observations()
        tally = self.process.evaluator.tally
        tally.count(Effort(rewrites=state["process_rewrites"] - tally.effort.rewrites))
