"""A trained policy that points at one of the things that are there, as it is asked from outside."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from rlflow.agents.pointing import PointerDistribution


class Pointing(Protocol):
    """Anything that gives a distribution over things at observations (B, size)."""

    def distribution(self, observation: Tensor) -> PointerDistribution: ...


class PointingController:
    """The controller of a pointing policy; a subclass has the policy."""

    policy: Pointing

    @torch.no_grad()
    def act(
        self,
        observation: np.ndarray,
        deterministic: bool = True,
        generator: torch.Generator | None = None,
    ) -> np.ndarray:
        """Choose actions (...) int64 for observations (..., size) of K things: a place, or K for terminate.

        The most probable ones; unless `deterministic`, they are drawn with the generator.
        """
        flat = torch.from_numpy(observation).reshape(-1, observation.shape[-1])
        distribution = self.policy.distribution(flat)
        actions = distribution.mode() if deterministic else distribution.sample(generator)
        return actions.numpy().reshape(observation.shape[:-1])

    @torch.no_grad()
    def likeliest(self, observation: np.ndarray, number: int, generator: torch.Generator | None = None) -> list[int]:
        """Return up to `number` places of things, the most probable first, without terminate.

        The observation is (size,). With a generator they are drawn without replacement.
        """
        return self.policy.distribution(torch.from_numpy(observation)[None]).likeliest(number, generator)
