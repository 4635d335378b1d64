"""Episodes of a process side by side, in the interface that a policy knows from its dreams.

    env = RealEpisodes(process, num_envs=16, max_steps=12, observed=space, max_choices=128)

Each step is a choice that is carried out, and `rewrites` counts the rewrites that choices stand for. The reward is any
of `environments.rewards`; a measured one remembers its measurements for all episodes.

The invariant: an episode depends on its beginning and its actions alone, so what is kept of one is what it took, and
what was measured.
"""

from __future__ import annotations

import hashlib
from typing import Any, Generic, TypeVar

import numpy as np
from gymnasium import spaces

from rlflow.cost.effort import Effort
from rlflow.environments.episode import Episode
from rlflow.environments.rewards import Reward, RewardConfig, reward_of
from rlflow.processes.process import Process
from rlflow.world_model.batch_env import BatchEnv

P = TypeVar("P", bound=Process[Any, int])


class RealEpisodes(BatchEnv, Generic[P]):
    """B episodes from the start of a process; action k is the k-th choice, the last action terminates.

    An episode ends by that, and is truncated at `max_steps`, which is an end like another where the reward is paid at
    the end alone; its info has `TimeLimit.truncated`, `terminal_observation` and `final_graph`. An invalid action earns
    `reward.config.invalid` and changes nothing. The reward is by price, unless another is given.
    """

    def __init__(
        self,
        process: P,
        *,
        num_envs: int,
        max_steps: int,
        observed: spaces.Box,
        max_choices: int,
        reward: Reward | None = None,
    ) -> None:
        self.process, self.max_steps, self.max_choices = process, max_steps, max_choices
        self.reward = reward or reward_of(RewardConfig())
        self.rewrites = 0
        super().__init__(num_envs, observed, spaces.Discrete(max_choices + 1))
        self.begin()

    def begin(self) -> None:
        """Begin all episodes."""
        self._numbers, self._begun = [0] * self.num_envs, 0
        self._episodes = [self._next(place) for place in range(self.num_envs)]

    def curriculum(self, number: int) -> list[Any]:
        """Return the states up to the one in which the episode of this number, from 1, begins: here the start alone."""
        return [self.process.start()]

    def fingerprint(self, *settings: object) -> str:
        """Hash of all that an episode depends on, of which the settings of the process are given."""
        start, evaluator = self.process.start(), self.process.evaluator
        prices = (evaluator.cost_model.name, start.runtime_ms, self.reward.config)
        said = (start.hash, prices, [rule.id for rule in evaluator.rewriter.rules], self.max_steps, *settings)
        return hashlib.sha256(repr(said).encode()).hexdigest()

    def reset(self) -> np.ndarray:
        """Begin all episodes anew; returns their observations."""
        self.begin()
        return self._observations()

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Carry out the actions; episodes that end begin anew in the same call."""
        reward, done = np.zeros(self.num_envs, np.float32), np.zeros(self.num_envs, bool)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for place, (action, episode) in enumerate(zip(self._actions.tolist(), self._episodes, strict=True)):
            choice, before = None if action == self.max_choices else action, episode.state
            outcome = episode.act(choice)
            reward[place], done[place] = outcome.reward, outcome.ended
            if choice is not None and outcome.valid:
                self.rewrites += len(self.process.way(before, choice, episode.state))
            if outcome.ended:
                infos[place] = {
                    "terminal_observation": self.process.observe(episode.state),
                    "TimeLimit.truncated": outcome.truncated and not self.reward.config.of_step.at_end,
                    "final_graph": episode.state.graph,
                }
                self._episodes[place] = self._next(place)
        return self._observations(), reward, done, infos

    def action_masks(self) -> np.ndarray:
        """(B, K + 1) bool, as sb3-contrib asks for them: the choices that are there, and terminate."""
        numbers = np.array([len(self.process.choices(episode.state)) for episode in self._episodes])
        masks = np.arange(self.max_choices + 1) < numbers[:, None]
        masks[:, self.max_choices] = True
        return masks

    def state_dict(self) -> dict[str, Any]:
        """Return what each episode took so far, what observations depend on, what was measured, and the rewrites."""
        return {
            "numbers": list(self._numbers),
            "begun": self._begun,
            "taken": [list(episode.taken) for episode in self._episodes],
            "process": self.process.state_dict(),
            "process_rewrites": self.process.evaluator.effort.rewrites,
            "reward": self.reward.state_dict(),
            "rewrites": self.rewrites,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned; the episodes are played again, which does not count."""
        self.process.load_state_dict(state["process"])
        self.reward.load_state_dict(state["reward"])
        self._numbers, self._begun, self.rewrites = state["numbers"], state["begun"], state["rewrites"]
        self._episodes = [self._new(number) for number in self._numbers]
        for episode, taken in zip(self._episodes, state["taken"], strict=True):
            for choice in taken:
                episode.take(choice)
        self._observations()
        tally = self.process.evaluator.tally
        tally.count(Effort(rewrites=state["process_rewrites"] - tally.effort.rewrites))

    def _next(self, place: int) -> Episode[Any, int]:
        self._begun += 1
        self._numbers[place] = self._begun
        return self._new(self._begun)

    def _new(self, number: int) -> Episode[Any, int]:
        return Episode(self.process, self.reward, self.max_steps, self.curriculum(number))

    def _observations(self) -> np.ndarray:
        return np.stack([self.process.observe(episode.state) for episode in self._episodes])
