"""PPO in dreams of two formulations: deterministic, resumable, and it learns."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from support.slot_dream import SlotDream, SlotPolicy

from rlflow.agents.graph_level.controller import ControllerArguments
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.factored_policy import FactoredPolicy
from rlflow.agents.maskable_ppo import train_policy
from rlflow.agents.ppo_config import PPOConfig
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.dream_env import GraphLevelDreamEnv, visited_states
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.model import GraphLevelModel

Train = Callable[..., MaskableActorCriticPolicy]

CONFIG = PPOConfig(total_steps=256, steps_per_update=8, batch_size=32, epochs=2)


class Interrupted(Exception):
    """Stands for a kill between two updates."""


@pytest.fixture
def pooled(world_model: GraphLevelModel, rollouts: Rollouts) -> Train:
    """Trains a controller over (rule, location) in a dream that is built anew: flat observations."""
    starts, dream = visited_states(world_model, rollouts), GraphLevelDreamConfig(num_envs=8, max_steps=12)

    def train(config: PPOConfig, **settings: Any) -> MaskableActorCriticPolicy:
        env = GraphLevelDreamEnv(world_model, starts, dream, seed=0)
        network = ControllerArguments.of(world_model, ControllerConfig(width=16, rule_embedding=4)).policy_settings()
        return train_policy(env, FactoredPolicy, network, config, fingerprint="pooled", **{"seed": 0, **settings})

    return train


@pytest.fixture(params=["pooled", "slots"])
def train(request: pytest.FixtureRequest) -> Train:
    """The same, or a policy over slots: observations in named parts, and one index for an action."""
    if request.param == "pooled":
        return request.getfixturevalue("pooled")

    def train(config: PPOConfig, **settings: Any) -> MaskableActorCriticPolicy:
        network, env = {"net_arch": [16]}, SlotDream(noise=1.0)
        return train_policy(env, SlotPolicy, network, config, fingerprint="slots", **{"seed": 0, **settings})

    return train


def same(one: MaskableActorCriticPolicy, two: MaskableActorCriticPolicy) -> bool:
    return all(torch.equal(value, two.state_dict()[name]) for name, value in one.state_dict().items())


def test_the_same_seed_trains_the_same_policy(train: Train) -> None:
    first, second, other = (train(CONFIG, seed=seed) for seed in (0, 0, 1))
    assert same(first, second)
    assert not same(first, other)


def test_every_update_is_reported(train: Train) -> None:
    reports: dict[int, dict[str, float]] = {}
    train(CONFIG, on_update=reports.__setitem__)
    assert sorted(reports) == [1, 2, 3, 4]
    for metrics in reports.values():
        assert {"episodes", "train/approx_kl", "train/entropy_loss"} <= set(metrics)
        assert ("return_percent" in metrics) == (metrics["episodes"] > 0)
    assert any("return_percent" in metrics for metrics in reports.values())


def test_the_first_minibatch_has_ratio_one(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through PPO itself, with its buffer and its minibatches: at most float32's rounding of another batch size.
    The mean of (ratio - 1) - log ratio is what PPO calls approximate KL."""
    ratios = []
    plain = MaskablePPO.train

    def spy(model: MaskablePPO) -> None:
        for data in model.rollout_buffer.get(32):
            _, updated, _ = model.policy.evaluate_actions(data.observations, data.actions.squeeze(-1), None)
            ratios.append(torch.exp(updated - data.old_log_prob).detach())
        plain(model)

    monkeypatch.setattr(MaskablePPO, "train", spy)
    train(PPOConfig(**{**vars(CONFIG), "total_steps": 64}))
    assert len(ratios) == 2
    torch.testing.assert_close(torch.cat(ratios), torch.ones(64), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_ppo_beats_the_random_policy_it_starts_from(pooled: Train) -> None:
    """In the small dream: mean return of the last five updates against that of the first five."""
    returns: list[float] = []
    config = PPOConfig(total_steps=12_000, steps_per_update=32, batch_size=128, learning_rate=3e-3)
    pooled(config, on_update=lambda _, metrics: returns.append(metrics["return_percent"]))
    assert np.mean(returns[-5:]) > np.mean(returns[:5]) + 1.0
