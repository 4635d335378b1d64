"""The dream: a batched environment that a world model imagines, with no real step in it.

B dreams are stepped together: `step` takes B actions, asks the world model once, and returns B observations, rewards
and ends. A dream starts in a state that the rollouts visited; one that ends begins anew in the same call, as every
`VecEnv` of Stable-Baselines3 does.

What a state is, a subclass says. Here it is tensors by name, with one row for each dream: one vector and the match
counts, or a table of tokens with the mask of those that are there.

The invariant: nothing here can reach a real graph (docs/decisions.md, 8), and everything that a step depends on is in
`state_dict`, so that a training goes on after a kill as if it had not happened.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from rlflow.errors import InputError
from rlflow.step_reward import INCREMENTAL, StepChange, StepReward
from rlflow.world_model.batch_env import BatchEnv

INVALID_ACTION_REWARD = -100.0  # the real environment's (docs/decisions.md, 11)

States = dict[str, Tensor]  # one row for each dream
Observation = np.ndarray | dict[str, np.ndarray]
Beside = Callable[[States, Tensor], Tensor]
"""Tells (B,) what actions save in states, in percent, of the quantity that a reward counts beside the price."""


class DreamEnv(BatchEnv):
    """B dreams side by side, stepped together in torch.

    Rewards are in percent, and those of a step on a real graph (`step_reward`), by what the world model says of it. An
    episode ends by terminate (or where the world model predicts it), and is truncated at `max_steps` with
    `TimeLimit.truncated` and `terminal_observation` in its info; where the reward is paid at the end alone, that is an
    end like another. An invalid action costs 100 and changes nothing.

    A subclass gives `start_states`, `is_valid`, `imagine` and `observe`, which keep nothing: the present states are
    `states`, and all noise is drawn from `generator`. Its own `__init__` calls this one last, since that draws the
    first states.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        *,
        terminate: Tensor,
        initial: Tensor,
        initial_fraction: float,
        num_envs: int,
        max_steps: int,
        seed: int,
        reward: StepReward = INCREMENTAL,
        beside: Beside | None = None,
    ) -> None:
        """terminate: the action that ends an episode, always valid. beside: what `reward.quantity` asks for.

        initial (S,) bool: an episode of the rollouts began in that start state; a dream begins in one of those with
        probability `initial_fraction`, else in any of the S.
        """
        if not initial.any():
            raise InputError("dream: no start state; give rollouts with at least one step")
        super().__init__(num_envs, observation_space, action_space)
        self.terminate, self.initial_fraction, self.max_steps = terminate, initial_fraction, max_steps
        self.reward, self._beside = reward, beside
        self.generator = torch.Generator().manual_seed(seed)
        self.steps, self.improvement = torch.zeros(num_envs, dtype=torch.int64), torch.zeros(num_envs)
        self._num_starts, self._initial = len(initial), torch.nonzero(initial).squeeze(-1)
        self.states = self.start_states(self._draw())

    @abstractmethod
    def start_states(self, index: Tensor) -> States:
        """The start states at index (B,)."""

    @abstractmethod
    def is_valid(self, states: States, action: Tensor) -> Tensor:
        """Return (B,) bool: the masks of the states admit the actions."""

    @abstractmethod
    def imagine(self, states: States, action: Tensor) -> tuple[States, Tensor, Tensor]:
        """Next states, savings (B,) in percent and ends (B,) bool, for valid actions. States have a `cost` (B,)."""

    @abstractmethod
    def observe(self, states: States) -> Observation:
        """The observations of the states, as a policy sees them."""

    def reset(self) -> Any:
        """Begin all dreams anew; returns their observations."""
        self.states = self.start_states(self._draw())
        self.steps.zero_()
        self.improvement = torch.zeros(self.num_envs)
        return self.observe(self.states)

    @torch.no_grad()
    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Imagine the actions' outcome; dreams that end begin anew in the same call."""
        # An invalid action is imagined as terminate, then undone: no model is ever asked about what cannot be done.
        action = torch.from_numpy(self._actions)
        valid = self.is_valid(self.states, action)
        action = _where(valid, action, self.terminate)
        beside = torch.full((self.num_envs,), torch.nan) if self._beside is None else self._beside(self.states, action)
        following, saved, terminated = self.imagine(self.states, action)
        invalid = torch.nonzero(~valid).squeeze(-1)
        self.states = with_rows(following, invalid, _rows(self.states, invalid))

        self.steps += 1
        self.improvement = self.improvement + torch.where(valid, saved, 0.0)
        terminated = terminated & valid
        done = terminated | (self.steps >= self.max_steps)
        change = StepChange(
            saved, self.states["cost"], self.improvement, done, memory_saved=beside, latency_saved=beside
        )
        reward = torch.where(valid, self.reward(change), INVALID_ACTION_REWARD)

        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        ended = torch.nonzero(done).squeeze(-1)
        if len(ended):
            last = self.observe(_rows(self.states, ended))
            for place, index in enumerate(ended.tolist()):
                infos[index] = {
                    "terminal_observation": _row(last, place),
                    "TimeLimit.truncated": not (bool(terminated[index]) or self.reward.at_end),
                }
            self.states = with_rows(self.states, ended, self.start_states(self._draw()[ended]))
            self.steps[ended] = 0
            self.improvement[ended] = 0.0

        return self.observe(self.states), reward.numpy(), done.numpy(), infos

    def state_dict(self) -> dict[str, Tensor]:
        """All that a dream carries from step to step."""
        carried = {"steps": self.steps, "improvement": self.improvement, "generator": self.generator.get_state()}
        return {**self.states, **carried}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state_dict` returned."""
        self.states = {name: state[name] for name in self.states}
        self.steps, self.improvement = state["steps"].clone(), state["improvement"].clone()
        self.generator.set_state(state["generator"])

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed the noise of the dream."""
        if seed is not None:
            self.generator.manual_seed(seed)
        return [seed] * self.num_envs

    def _draw(self) -> Tensor:
        """Draw the index (B,) of a start state for every dream."""
        number = self.num_envs
        everywhere = torch.randint(self._num_starts, (number,), generator=self.generator)
        chosen = torch.randint(len(self._initial), (number,), generator=self.generator)
        at_start = torch.rand(number, generator=self.generator) < self.initial_fraction
        return torch.where(at_start, self._initial[chosen], everywhere)


def with_rows(states: States, index: Tensor, rows: States) -> States:
    """The states with those of the dreams `index` (M,) int64 replaced by the M others."""
    if not len(index):
        return states
    return {name: kept.index_copy(0, index, rows[name]) for name, kept in states.items()}


def _rows(states: States, index: Tensor) -> States:
    return {name: value.index_select(0, index) for name, value in states.items()}


def _where(condition: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """Choose between two tensors by row."""
    return torch.where(condition.reshape(-1, *[1] * (yes.dim() - 1)), yes, no)


def _row(observation: Observation, index: int) -> Observation:
    """The observation of one dream."""
    if isinstance(observation, dict):
        return {name: rows[index] for name, rows in observation.items()}
    return observation[index]
