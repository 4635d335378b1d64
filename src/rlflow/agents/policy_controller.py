"""A trained policy, as it is asked from outside, stored and read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from rlflow.errors import InputError
from rlflow.world_model.bundle import CONTROLLER, Arguments


class PolicyArguments(Arguments, ABC):
    """All that is needed to build the network again; stored as JSON beside the weights."""

    @abstractmethod
    def new_policy(self) -> nn.Module:
        """Return an untrained policy of the right shape."""


@dataclass(frozen=True)
class PolicyController:
    """A policy and what it was made of; a subclass says which, and how its arguments are read.

    policy: a network with `distribution`, that over choices and terminate at observations (B, size).
    """

    policy: Any
    arguments: Any
    arguments_kind: ClassVar[type[PolicyArguments]]

    @classmethod
    def untrained(cls, arguments: PolicyArguments, *, seed: int) -> Self:
        """Return the controller before training, always the same for a seed: the baseline of a score.

        Its network is frozen, and torch's own generator is left as it was.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(arguments.new_policy().eval().requires_grad_(False), arguments)

    def like(self, other: PolicyController) -> Self:
        """Return this controller with the weights of another. `InputError` if that has another network."""
        network = deepcopy(self.policy)
        try:
            network.load_state_dict(other.policy.state_dict())
        except RuntimeError as error:
            raise InputError(
                "a controller cannot go on from one of another network: give it the same width and kind, or let it "
                f"begin afresh ({str(error).splitlines()[0]})"
            ) from None
        return replace(self, policy=network)

    def save(self, folder: Path) -> None:
        """Write `controller.safetensors` and `controller.json`; equal policies give equal bytes."""
        CONTROLLER.save(self.policy, self.arguments, folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote. Raises InputError where the folder holds no controller."""
        return cls(*CONTROLLER.load(folder, cls.arguments_kind, lambda arguments: arguments.new_policy()))

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
