"""Episodes on a real graph, side by side, in the interface that a policy knows from its dreams.

A subclass says how an episode begins, what an action does in it and what is observed of it. Each step is a rewrite that
is carried out, and `rewrites` counts them. The reward is any of `environments.rewards`; a measured one remembers
its measurements for all episodes.

The invariant: an episode depends on its beginning and its actions alone, so what is kept of one is what it took, and
what was measured.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from gymnasium import spaces

from rlflow.environments.rewards import Reward
from rlflow.environments.transition import State, Transition
from rlflow.world_model.batch_env import BatchEnv

NOTHING = -1
"""What an invalid action takes."""


class Course(Protocol):
    """An episode on its way: all that it took so far, and the graphs that it went through, the original first."""

    taken: list[int]

    @property
    def visited(self) -> list[Any]: ...


Episode = TypeVar("Episode", bound=Course)


class RealEpisodes(BatchEnv, Generic[Episode]):
    """B episodes from the original; the last action terminates.

    An episode ends by that, and is truncated at `max_steps`; its info has `TimeLimit.truncated`, `terminal_observation`
    and `final_graph`. An invalid action earns `reward.config.invalid` and changes nothing.
    """

    def __init__(self, num_envs: int, max_steps: int, observed: spaces.Box, max_choices: int, reward: Reward) -> None:
        self.max_steps, self.max_choices, self.reward = max_steps, max_choices, reward
        self.rewrites = 0
        super().__init__(num_envs, observed, spaces.Discrete(max_choices + 1))

    @abstractmethod
    def new_episode(self) -> Episode:
        """Begin an episode."""

    @abstractmethod
    def choice(self, episode: Episode, action: int) -> int:
        """Return what an action takes, `NOTHING` if it is invalid."""

    @abstractmethod
    def take(self, episode: Episode, choice: int) -> State:
        """Carry out what was chosen; returns the graph that it leads to."""

    @abstractmethod
    def observation(self, episode: Episode) -> np.ndarray:
        """Return what is observed of an episode."""

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
            done[place] = terminated or len(episode.taken) + 1 >= self.max_steps
            reward[place] = self._act(episode, action, ended=bool(done[place]))
            if done[place]:
                infos[place] = {
                    "terminal_observation": self.observation(episode),
                    "TimeLimit.truncated": not terminated,
                    "final_graph": episode.visited[-1].graph,
                }
                self._episodes[place] = self.new_episode()
        return self._observations(), reward, done, infos

    def state_dict(self) -> dict[str, Any]:
        """Return what each episode took so far, what was measured, and the number of rewrites."""
        return {
            "taken": [list(episode.taken) for episode in self._episodes],
            "reward": self.reward.state_dict(),
            "rewrites": self.rewrites,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned; the episodes are played again, which does not count."""
        self.reward.load_state_dict(state["reward"])
        self.begin_as(state)
        for episode, taken in zip(self._episodes, state["taken"], strict=True):
            for choice in taken:
                self._take(episode, choice)
        self.rewrites = state["rewrites"]

    def _act(self, episode: Episode, action: int, ended: bool) -> float:
        """Carry out an action; returns its reward."""
        if action == self.max_choices:
            return self.reward(Transition([*episode.visited, episode.visited[-1]], ended))
        choice = self.choice(episode, action)
        self._take(episode, choice)
        return self.reward.config.invalid if choice == NOTHING else self.reward(Transition(episode.visited, ended))

    def _take(self, episode: Episode, choice: int) -> None:
        episode.taken.append(choice)
        if choice != NOTHING:
            episode.visited.append(self.take(episode, choice))
            self.rewrites += 1

    def _observations(self) -> np.ndarray:
        return np.stack([self.observation(episode) for episode in self._episodes])
