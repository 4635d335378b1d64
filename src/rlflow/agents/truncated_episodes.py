"""Episodes that are cut off at the horizon: the critic says what the rest of them would have brought."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper


class TruncatedEpisodes(VecEnvWrapper):
    """A wrapper that adds to the reward of a truncated step what the critic expects after it, discounted.

    Stable-Baselines3 does the same, but asks the critic about one episode at a time. So that it is not done twice, the
    infos of these steps lose their `terminal_observation`. `policy` is set once there is one, before the first step.
    """

    policy: MaskableActorCriticPolicy

    def __init__(self, venv: VecEnv, discount: float) -> None:
        super().__init__(venv)
        self.discount = discount

    def reset(self) -> Any:
        """Begin all episodes anew."""
        return self.venv.reset()

    def step_wait(self) -> Any:
        """Step the environment; the rewards that come back count on."""
        observation, reward, done, infos = self.venv.step_wait()
        truncated = [index for index, info in enumerate(infos) if info.get("TimeLimit.truncated")]
        if truncated:
            last = _stacked([infos[index].pop("terminal_observation") for index in truncated])
            with torch.no_grad():
                expected = self.policy.predict_values(self.policy.obs_to_tensor(last)[0])  # type: ignore[arg-type]
            reward[truncated] += self.discount * expected.squeeze(1).numpy()
        return observation, reward, done, infos


def _stacked(observations: Sequence[Any]) -> Any:
    """Observations, flat or in named parts, as a batch of them."""
    first = observations[0]
    if isinstance(first, dict):
        return {name: np.stack([observation[name] for observation in observations]) for name in first}
    return np.stack(observations)
