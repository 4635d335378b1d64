"""Episodes over candidates on a real graph, side by side: observations are names of states in a policy's memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlflow.agents.candidates.controller import NAMES
from rlflow.agents.candidates.memory import CandidateMemory, PriceScale
from rlflow.agents.real_episodes import NOTHING, RealEpisodes
from rlflow.cost.effort import Effort
from rlflow.environments.candidate_process import Account, CandidateProcess, CandidateState


@dataclass
class _Episode:
    """An episode on its way: where it is, what it is paid by, and the candidates that it took."""

    state: CandidateState
    account: Account
    taken: list[int] = field(default_factory=list)


class CandidateEpisodes(RealEpisodes[_Episode]):
    """B episodes of a process from the original. Action k is the k-th candidate, K terminates.

    Rewards are those of the process, in percent. An invalid action earns `reward.invalid` and changes nothing.
    """

    def __init__(
        self, process: CandidateProcess, memory: CandidateMemory, scale: PriceScale | None, num_envs: int
    ) -> None:
        self.process, self.memory, self.scale = process, memory, scale
        super().__init__(num_envs, process.config.max_steps, NAMES, process.config.max_candidates)
        self.begin()

    def new_episode(self) -> _Episode:
        """Begin an episode."""
        return _Episode(self.process.start(), self.process.account())

    def choice(self, episode: _Episode, action: int) -> int:
        """Return the candidate of an action."""
        return action if action < len(episode.state.candidates) else NOTHING

    def take(self, episode: _Episode, choice: int, is_last: bool) -> float:
        """Make a candidate the current graph."""
        if choice == NOTHING:
            return self.process.reward_config.invalid
        episode.state = self.process.step(episode.state, choice)
        return episode.account.step(episode.state.graph, is_last)

    def stop(self, episode: _Episode) -> float:
        """Return what an episode is owed that stops."""
        return episode.account.stop(episode.state.graph)

    def observation(self, episode: _Episode) -> np.ndarray:
        """(1,) int64: the name of the state."""
        return np.array([self.memory.keep(episode.state, self.scale)], np.int64)

    def state_dict(self) -> dict[str, Any]:
        """What each episode took so far, and the rewrites that were carried out, candidates included."""
        return super().state_dict() | {"evaluations": self.process.evaluator.effort.rewrites}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned, with the states of all episodes in the memory."""
        super().load_state_dict(state)
        self._observations()
        evaluator = self.process.evaluator
        evaluator.count(Effort(rewrites=state["evaluations"] - evaluator.effort.rewrites))
