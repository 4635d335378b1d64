"""Policies that read their masks from the observation: what their base does, and what it refuses."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor, nn

from rlflow.agents.observed_masks import ObservedMaskDistribution, ObservedMaskPolicy
from rlflow.nn.masking import masked_entropy, masked_log_softmax, sample_categorical


@dataclass(frozen=True, eq=False)
class Categorical(ObservedMaskDistribution):
    """One of three actions."""

    log_probability: Tensor

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        return sample_categorical(self.log_probability, generator)

    def mode(self) -> Tensor:
        return self.log_probability.argmax(dim=-1)

    def log_prob(self, actions: Tensor) -> Tensor:
        return self.log_probability.gather(-1, actions.long()[:, None]).squeeze(-1)

    def entropy(self) -> Tensor:
        return masked_entropy(self.log_probability)


class ThreeActions(ObservedMaskPolicy):
    """An action is valid where the observation is positive."""

    def build_networks(self) -> None:
        self.actor, self.critic = nn.Linear(3, 3), nn.Linear(3, 1)

    def distribution(self, observation: Tensor) -> Categorical:
        return Categorical(masked_log_softmax(self.actor(observation), observation > 0))

    def predict_values(self, obs: Any) -> Tensor:
        return self.critic(obs)


@pytest.fixture
def policy() -> ThreeActions:
    torch.manual_seed(0)
    space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    return ThreeActions(space, spaces.Discrete(3), lambda _: 0.5, net_arch=[])


SEEN = torch.tensor([[1.0, -1.0, 2.0], [-1.0, -2.0, 0.5]] * 20)


def test_actions_are_drawn_and_evaluated_under_the_observed_masks(policy: ThreeActions) -> None:
    actions, values, collected = policy(SEEN)
    assert (SEEN.gather(1, actions[:, None]) > 0).all()
    again, updated, entropy = policy.evaluate_actions(SEEN, actions, action_masks=torch.ones(40, 1))
    assert torch.equal(updated, collected)
    assert torch.equal(values, again)
    assert torch.equal(entropy, policy.distribution(SEEN).entropy())
    assert (entropy[1::2] == 0).all()
    assert (entropy[::2] > 0).all()


def test_the_deterministic_action_is_the_mode(policy: ThreeActions) -> None:
    mode = policy.distribution(SEEN).mode()
    assert torch.equal(policy(SEEN, deterministic=True)[0], mode)
    assert policy.predict(SEEN.numpy(), deterministic=True)[0].tolist() == mode.tolist()


def test_its_optimiser_has_all_parameters_and_the_scheduled_rate(policy: ThreeActions) -> None:
    (group,) = policy.optimizer.param_groups
    assert len(group["params"]) == len(list(policy.parameters())) == 4
    assert group["lr"] == 0.5


def test_masks_from_outside_are_refused(policy: ThreeActions) -> None:
    for refused in (policy.get_distribution, lambda seen, masks: policy(seen, action_masks=masks)):
        with pytest.raises(NotImplementedError, match="use_masking=False"):
            refused(SEEN, np.ones((40, 3)))
