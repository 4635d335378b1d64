"""Episodes over candidates on a real graph, side by side: observations are names of states in a policy's memory."""

from __future__ import annotations

from rlflow.agents.candidates.controller import NAMES
from rlflow.agents.candidates.memory import CandidateMemory, PriceScale
from rlflow.agents.real_episodes import RealEpisodes
from rlflow.environments.candidate_process import CandidateProcess, CandidateState
from rlflow.environments.rewards import Reward

_GOLDEN = 0.618  # of the way further with each episode: places that are spread evenly, however many there are


class CandidateEpisodes(RealEpisodes[CandidateProcess]):
    """B episodes of a process. Action k is the k-th candidate, K terminates.

    Their curriculum: they begin at the original, but for a share of `greedy_starts`, which begin at states on greedy
    search's descent, one after the other: what is to be learned lies beyond its end, and is rarely met from the
    original.

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
        self.greedy_starts, config = greedy_starts, process.config
        self._greedy = process.greedy_states() if greedy_starts else [process.start()]
        super().__init__(
            process.observed_by(memory.observer(scale)),
            num_envs=num_envs,
            max_steps=config.max_steps,
            observed=NAMES,
            max_choices=config.max_candidates,
            reward=reward,
        )

    def curriculum(self, number: int) -> list[CandidateState]:
        """Return the states of greedy search up to the one in which the episode of this number begins."""
        later = int(number * self.greedy_starts)
        begins_later = later > int((number - 1) * self.greedy_starts)
        steps = int(later * _GOLDEN % 1.0 * len(self._greedy)) if begins_later else 0
        return self._greedy[: steps + 1]
