"""A dream over a table of slots, with a policy: observations in named parts, and the index of a slot for an action."""

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableMultiInputActorCriticPolicy
from torch import Tensor

from rlflow.world_model.dream_env import DreamEnv, States

SLOTS = 4


class SlotDream(DreamEnv):
    """Taking a slot pays what is in it, plus noise, and empties it; the action `SLOTS` is to terminate.

    Start state s has the value 10 s + k in slot k. Only the first start state is initial, and has all slots filled;
    the others lack the last one.
    """

    def __init__(self, starts: int = 5, *, noise: float = 0.0, initial_fraction: float = 0.5, seed: int = 0) -> None:
        index = torch.arange(starts)
        self.noise = noise
        self.values = 10.0 * index[:, None] + torch.arange(SLOTS)
        self.filled = torch.ones(starts, SLOTS)
        self.filled[1:, -1] = 0.0
        super().__init__(
            spaces.Dict(
                {
                    "value": spaces.Box(-np.inf, np.inf, (SLOTS, 1), np.float32),
                    "filled": spaces.Box(0.0, 1.0, (SLOTS,), np.float32),
                }
            ),
            spaces.Discrete(SLOTS + 1),
            terminate=torch.tensor(SLOTS),
            initial=index == 0,
            initial_fraction=initial_fraction,
            num_envs=8,
            max_steps=3,
            seed=seed,
        )

    def start_states(self, index: Tensor) -> States:
        """The start states at index (B,)."""
        cost = torch.full((len(index),), 100.0)
        return {"value": self.values[index][..., None], "filled": self.filled[index], "cost": cost}

    def is_valid(self, states: States, action: Tensor) -> Tensor:
        """Whether the slot is filled; terminate always is."""
        filled = torch.nn.functional.pad(states["filled"], (0, 1), value=1.0)
        return filled.gather(-1, action[:, None]).squeeze(-1) > 0

    def imagine(self, states: States, action: Tensor) -> tuple[States, Tensor, Tensor]:
        """Take the slots."""
        taken = torch.nn.functional.one_hot(action, SLOTS + 1)[:, :SLOTS]
        noise = self.noise * torch.randn(len(action), generator=self.generator)
        saved = (taken * states["value"].squeeze(-1)).sum(dim=-1) + noise
        filled = states["filled"] * (1 - taken)
        return {"value": states["value"], "filled": filled, "cost": states["cost"] - saved}, saved, action == SLOTS

    def observe(self, states: States) -> dict[str, np.ndarray]:
        """All slots."""
        return {name: states[name].numpy() for name in ("value", "filled")}


class SlotPolicy(MaskableMultiInputActorCriticPolicy):
    """sb3-contrib's policy, with masks that it reads from the observation."""

    def forward(self, obs: Any, deterministic: bool = False, action_masks: Any = None) -> tuple[Tensor, Tensor, Tensor]:
        """Actions, values and log-probabilities."""
        return super().forward(obs, deterministic, _masks(obs))

    def evaluate_actions(self, obs: Any, actions: Tensor, action_masks: Any = None) -> tuple[Tensor, Tensor, Any]:
        """Values, log-probabilities and entropies."""
        return super().evaluate_actions(obs, actions, _masks(obs))


def _masks(observation: dict[str, Tensor]) -> Tensor:
    return torch.nn.functional.pad(observation["filled"], (0, 1), value=1.0)
