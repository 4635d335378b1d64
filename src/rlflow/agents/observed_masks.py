"""Policies that read from the observation which actions are valid, in the interface of sb3-contrib.

The counts of matches are part of what a policy sees, and say what can be done. So no mask is needed from outside, and
no buffer stores them. A subclass gives a distribution with the masks already in it, and values:

    class Policy(ObservedMaskPolicy):
        def build_networks(self): ...
        def distribution(self, observation): ...
        def predict_values(self, obs): ...

The invariant: the log-probability of an action is the same when it is sampled and when PPO evaluates it, so that the
probability ratio is exactly 1 before the first update.
"""

from abc import ABC, abstractmethod
from typing import Any

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor


class ObservedMaskDistribution(ABC):
    """The distribution over actions of a batch, with the masks already in it."""

    @abstractmethod
    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw one action per row."""

    @abstractmethod
    def mode(self) -> Tensor:
        """The likeliest action of each row."""

    @abstractmethod
    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-probability (B,) of actions; -inf for an invalid one."""

    @abstractmethod
    def entropy(self) -> Tensor:
        """Entropy (B,) in nats."""

    def entropy_at(self, actions: Tensor) -> Tensor:
        """Entropy (B,) in nats, for PPO's bonus: exact, or right on average over actions that were drawn."""
        return self.entropy()

    def get_actions(self, deterministic: bool = False) -> Tensor:
        """The likeliest action of each row, or a drawn one."""
        return self.mode() if deterministic else self.sample()

    def apply_masking(self, masks: Any) -> None:
        """Refused: the observation carries the mask; learn with use_masking=False."""
        if masks is not None:
            raise NotImplementedError("the policy reads its masks from the observation: use_masking=False")


class ObservedMaskPolicy(MaskableActorCriticPolicy):
    """Actor and critic over flat observations that carry the masks."""

    @abstractmethod
    def build_networks(self) -> None:
        """Make all modules of the policy."""

    @abstractmethod
    def distribution(self, observation: Tensor) -> ObservedMaskDistribution:
        """The policy at observations (B, size)."""

    @abstractmethod
    def predict_values(self, obs: Any) -> Tensor:
        """Values (B, 1)."""

    def distribution_and_values(self, observation: Tensor) -> tuple[ObservedMaskDistribution, Tensor]:
        """Both at once, for policies in which actor and critic share work."""
        return self.distribution(observation), self.predict_values(observation)

    def forward(
        self, obs: Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions, values (B, 1) and log-probabilities (B,)."""
        distribution, values = self.distribution_and_values(obs)
        distribution.apply_masking(action_masks)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, values, distribution.log_prob(actions)

    def evaluate_actions(self, obs: Tensor, actions: Tensor, action_masks: Any = None) -> tuple[Tensor, Tensor, Tensor]:
        """Values (B, 1), log-probabilities (B,) and entropies (B,) for PPO's update.

        The masks that the rollout buffer hands in are ignored: the observation carries them.
        """
        distribution, values = self.distribution_and_values(obs)
        return values, distribution.log_prob(actions), distribution.entropy_at(actions)

    def get_distribution(  # type: ignore[override]
        self, obs: Any, action_masks: Any = None
    ) -> ObservedMaskDistribution:
        """The policy at obs."""
        distribution = self.distribution(obs)
        distribution.apply_masking(action_masks)
        return distribution

    def _predict(  # type: ignore[override]
        self, observation: Any, deterministic: bool = False, action_masks: Any = None
    ) -> Tensor:
        return self.get_distribution(observation, action_masks).get_actions(deterministic=deterministic)

    def _build(self, lr_schedule: Schedule) -> None:
        self.build_networks()
        settings = {"lr": lr_schedule(1), **self.optimizer_kwargs}
        self.optimizer = self.optimizer_class(self.parameters(), **settings)
