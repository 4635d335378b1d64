"""A policy that points at one of the classes of matches that are there, or terminates.

Every kind is read alone, by one network for all; what a state is as a whole, its context, is the mean and the maximum
over kinds, the mean over those next to the last rewrite, and the cost. The heads are those of `agents.pointing`.
"""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig
from rlflow.agents.pointing import PointingPolicy, Reading
from rlflow.nn import pooling
from rlflow.nn.mlp import mlp
from rlflow.world_model.match_level.observation import TokenLayout

LEAST_SAVING = 1e-3  # units: of less, none is a share


class PointerPolicy(PointingPolicy):
    """Actor and critic over flat observations of `TokenLayout`; action K, beyond the last place, is terminate."""

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        lr_schedule: Schedule,
        *,
        embedding: int,
        config: MatchLevelControllerConfig,
        **kwargs: Any,
    ) -> None:
        """embedding: the width of a token's embedding."""
        self.layout, self.config = TokenLayout(int(action_space.n) - 1, embedding), config
        super().__init__(observation_space, action_space, lr_schedule, net_arch=[], **kwargs)

    def build_networks(self) -> None:
        """Make the network of classes and the heads."""
        config, width = self.config, self.config.width
        self.kind = nn.Sequential(mlp([self.layout.width, width, width]), nn.Tanh())
        self.prior = nn.Parameter(torch.tensor([config.greedy_weight, config.expert_weight]))
        self.build_heads(width, 3 * width + 1, config.terminate_bias)

    def read(self, observation: Tensor) -> Reading:
        """Read observations (B, size) of any number of classes."""
        view = self.layout.split(observation)
        row, place = view.present.nonzero(as_tuple=True)
        classes = view.classes[row, place]
        features = self.kind(classes)
        batch = len(observation)

        near = self.layout.is_near(classes)
        everywhere, nearby = pooling.mean(features, row, batch), pooling.mean(features[near], row[near], batch)
        context = torch.cat([everywhere, pooling.largest(features, row, batch), nearby, view.cost], dim=-1)
        saving, taken = self.layout.saving(classes)[:, None], self.layout.taken(classes)[:, None]
        best, likeliest = (pooling.largest(column, row, batch)[row] for column in (saving, taken))
        share = (saving / best.clamp_min(LEAST_SAVING)).clamp_min(-1.0)
        prior = torch.cat([share, taken - likeliest], dim=1) @ self.prior
        return Reading(features, view.present, row, context, prior)
