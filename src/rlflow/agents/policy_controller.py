"""A trained policy, as it is asked from outside."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor


class Policy(Protocol):
    """Anything that gives a distribution over choices and terminate at observations (B, size)."""

    def distribution(self, observation: Tensor) -> Any: ...


class PolicyController:
    """The controller of a policy; a subclass has the policy."""

    policy: Policy

    @torch.no_grad()
    def act(
        self,
        observation: np.ndarray,
        deterministic: bool = True,
        generator: torch.Generator | None = None,
    ) -> np.ndarray:
        """Choose actions int64 for observations (..., size): (...) choices, or K for terminate, or (..., 2) pairs.

        The most probable ones; unless `deterministic`, they are drawn with the generator.
        """
        distribution = self.policy.distribution(torch.from_numpy(observation).reshape(-1, observation.shape[-1]))
        actions: np.ndarray = (distribution.mode() if deterministic else distribution.sample(generator)).numpy()
        return actions.reshape(observation.shape[:-1] + actions.shape[1:])

    def choose(self, observation: np.ndarray, generator: torch.Generator | None = None) -> Any:
        """Choose for one observation (size,): the most probable choice or, with a generator, a drawn one."""
        action = self.act(observation, generator is None, generator)
        return tuple(action.tolist()) if action.ndim else int(action)

    @torch.no_grad()
    def likeliest(self, observation: np.ndarray, number: int, generator: torch.Generator | None = None) -> list[Any]:
        """Return up to `number` valid choices, the most probable first, without terminate.

        The observation is (size,). With a generator they are drawn without replacement.
        """
        found: list[Any] = self.policy.distribution(torch.from_numpy(observation)[None]).likeliest(number, generator)
        return found
