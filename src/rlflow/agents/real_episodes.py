"""Episodes on a real graph, side by side, in the interface that a policy knows from its dreams.

A subclass says how an episode begins, what an action does in it and what is observed of it. Each step is a rewrite that
is carried out, and `interactions` counts them.

The invariant: an episode depends on its beginning and its actions alone, so what is kept of one is what it took.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from gymnasium import spaces

from rlflow.world_model.batch_env import BatchEnv

NOTHING = -1
"""What an invalid action takes."""


class Course(Protocol):
    """An episode on its way: all that it took so far."""

    taken: list[int]


Episode = TypeVar("Episode", bound=Course)


class RealEpisodes(BatchEnv, Generic[Episode]):
    """B episodes from the original; the last action terminates.

    An episode ends by that, and is truncated at `max_steps` with `TimeLimit.truncated` and `terminal_observation` in
    its info.
    """

    def __init__(self, num_envs: int, max_steps: int, observed: spaces.Box, max_choices: int) -> None:
        self.max_steps, self.max_choices = max_steps, max_choices
        self.interactions = 0
        super().__init__(num_envs, observed, spaces.Discrete(max_choices + 1))

    @abstractmethod
    def new_episode(self) -> Episode:
        """Begin an episode."""

    @abstractmethod
    def choice(self, episode: Episode, action: int) -> int:
        """Return what an action takes, `NOTHING` if it is invalid."""

    @abstractmethod
    def take(self, episode: Episode, choice: int, is_last: bool) -> float:
        """Carry out what was chosen; return the reward."""

    @abstractmethod
    def observation(self, episode: Episode) -> np.ndarray:
        """Return what is observed of an episode."""

    def stop(self, episode: Episode) -> float:
        """Return the reward of terminating."""
        return 0.0

    def begin(self) -> None:
        """Begin all episodes; a subclass calls it once it can."""
        self._episodes = [self.new_episode() for _ in range(self.num_envs)]

    def begin_as(self, state: dict[str, Any]) -> None:
        """Begin the episodes that `state_dict` tells of."""
        self.begin()

    def reset(self) -> np.ndarray:
        """Begin all episodes anew; returns their observations."""
        self.begin()
        return self._observations()

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Carry out the actions; episodes that end begin anew in the same call."""
        reward, done = np.zeros(self.num_envs, np.float32), np.zeros(self.num_envs, bool)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for place, (action, episode) in enumerate(zip(self._actions.tolist(), self._episodes, strict=True)):
            terminated = action == self.max_choices
            is_last = len(episode.taken) + 1 >= self.max_steps
            reward[place] = self.stop(episode) if terminated else self._act(episode, action, is_last)
            done[place] = terminated or is_last
            if done[place]:
                last = self.observation(episode)
                infos[place] = {"terminal_observation": last, "TimeLimit.truncated": not terminated}
                self._episodes[place] = self.new_episode()
        return self._observations(), reward, done, infos

    def state_dict(self) -> dict[str, Any]:
        """Return what each episode took so far, and the rewrites that were carried out."""
        return {"taken": [list(episode.taken) for episode in self._episodes], "interactions": self.interactions}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned; the episodes are played again, which does not count."""
        self.begin_as(state)
        for episode, taken in zip(self._episodes, state["taken"], strict=True):
            for choice in taken:
                self._take(episode, choice, is_last=False)
        self.interactions = state["interactions"]

    def _act(self, episode: Episode, action: int, is_last: bool) -> float:
        return self._take(episode, self.choice(episode, action), is_last)

    def _take(self, episode: Episode, choice: int, is_last: bool) -> float:
        episode.taken.append(choice)
        self.interactions += choice != NOTHING
        return self.take(episode, choice, is_last)

    def _observations(self) -> np.ndarray:
        return np.stack([self.observation(episode) for episode in self._episodes])
