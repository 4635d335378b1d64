"""Observations of pass ordering as one vector: logarithms of counts, changes of costs, and the flags of an episode."""

from __future__ import annotations

import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableMultiInputActorCriticPolicy
from stable_baselines3.common.policies import MultiInputActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor


class PassFeatures(BaseFeaturesExtractor):
    """(B, F) float32 of an observation's parts. The part `hidden`, if any, is zero whatever it was."""

    def __init__(self, observation_space: spaces.Dict, hidden: str = "") -> None:
        super().__init__(observation_space, spaces.utils.flatdim(observation_space))
        self.hidden = hidden

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        parts = [_scaled(name, part.float()) * float(name != self.hidden) for name, part in observations.items()]
        return torch.cat(parts, dim=1)


def _scaled(name: str, part: torch.Tensor) -> torch.Tensor:
    """Counts as logarithms, since graphs differ by orders of magnitude, and percentages as changes."""
    if name == "counts":
        return torch.log1p(part)
    return part / 100.0 - 1.0 if name == "cost" else part


class _CriticSeesCosts:
    """Mixed into a policy with two feature extractors: the actor's hides the cost analysis."""

    _made = 0

    def make_features_extractor(self) -> BaseFeaturesExtractor:
        """Called by Stable-Baselines3 for the actor, and then for the critic."""
        self._made += 1
        return PassFeatures(self.observation_space, "cost" if self._made == 1 else "")  # type: ignore[attr-defined]


class ValueCostPolicy(_CriticSeesCosts, MultiInputActorCriticPolicy):
    """The policy of PPO, TRPO and A2C with the cost analysis for the value function alone."""


class MaskableValueCostPolicy(_CriticSeesCosts, MaskableMultiInputActorCriticPolicy):
    """The same for MaskablePPO."""
