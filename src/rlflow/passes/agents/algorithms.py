"""The algorithms that the paper compares, and two more, behind one way to make them and to ask what they prefer.

    model = new_model(config, envs, seed=0)
    model.learn(config.total_steps)
    logits = preferences(model, observation)                        (A + 1,), whatever the algorithm

PPO, TRPO and A2C prefer by the logits of their policy; DQN and QR-DQN by their action values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sb3_contrib import QRDQN, TRPO, MaskablePPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from rlflow.errors import InputError
from rlflow.passes.agents.features import MaskableValueCostPolicy, PassFeatures, ValueCostPolicy
from rlflow.passes.agents.pass_agent_config import PassAgentConfig


@dataclass(frozen=True)
class Algorithm:
    """A class of Stable-Baselines3, and if it has a policy and a value function (else action values alone)."""

    made_by: Callable[..., BaseAlgorithm]
    actor_critic: bool = True


ALGORITHMS: Mapping[str, Algorithm] = {
    "ppo": Algorithm(PPO),
    "maskable_ppo": Algorithm(MaskablePPO),
    "trpo": Algorithm(TRPO),
    "a2c": Algorithm(A2C),
    "dqn": Algorithm(DQN, actor_critic=False),
    "qr_dqn": Algorithm(QRDQN, actor_critic=False),
}


def algorithm_of(name: str) -> Algorithm:
    """An algorithm by its name. `InputError` if there is none."""
    if name not in ALGORITHMS:
        raise InputError(f"there is no pass-ordering algorithm {name!r}: choose one of {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def new_model(config: PassAgentConfig, envs: VecEnv, *, seed: int) -> BaseAlgorithm:
    """An untrained agent. `InputError` for a setting that the algorithm does not have."""
    algorithm = algorithm_of(config.algorithm)
    width = [config.width, config.width]
    network: dict[str, Any] = {"features_extractor_class": PassFeatures}
    network["net_arch"] = {"pi": width, "vf": width} if algorithm.actor_critic else width
    policy: Any = "MultiInputPolicy"
    if config.cost_features == "value":
        if not algorithm.actor_critic:
            raise InputError(f"{config.algorithm} has no value function beside its policy: set cost_features: both")
        policy = MaskableValueCostPolicy if config.algorithm == "maskable_ppo" else ValueCostPolicy
        network["share_features_extractor"] = False
    try:
        return algorithm.made_by(
            policy,
            envs,
            learning_rate=config.learning_rate,
            gamma=config.gamma,
            policy_kwargs=network,
            seed=seed,
            device="cpu",
            **config.settings,
        )
    except TypeError as error:
        raise InputError(f"{config.algorithm} cannot be made with these settings: {error}") from None


def preferences(model: BaseAlgorithm, observation: Mapping[str, np.ndarray]) -> np.ndarray:
    """The algorithm's preference for each action, (A + 1,) float64; higher is better."""
    policy: Any = model.policy
    with torch.no_grad():
        tensors, _ = policy.obs_to_tensor(dict(observation))
        if isinstance(model, DQN):
            found = model.q_net(tensors)
        elif isinstance(model, QRDQN):
            found = model.quantile_net(tensors).mean(dim=1)
        else:
            found = policy.get_distribution(tensors).distribution.logits
    return found[0].double().numpy()
