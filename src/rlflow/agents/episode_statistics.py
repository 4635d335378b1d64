"""Returns and lengths of the episodes that a training plays."""

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper


class EpisodeStatistics(VecEnvWrapper):
    """A wrapper that scales rewards for the critic and sums up the unscaled returns of the episodes that end."""

    def __init__(self, venv: VecEnv, reward_scale: float) -> None:
        super().__init__(venv)
        self.reward_scale = reward_scale
        self.totals = np.zeros(venv.num_envs)
        self.lengths = np.zeros(venv.num_envs, dtype=np.int64)
        self.finished: list[tuple[float, int]] = []

    def reset(self) -> Any:
        """Begin all episodes anew."""
        self.totals[:], self.lengths[:] = 0, 0
        return self.venv.reset()

    def step_wait(self) -> Any:
        """Step the environment; the rewards that come back are scaled."""
        observation, reward, done, infos = self.venv.step_wait()
        self.totals += reward
        self.lengths += 1
        for index in np.flatnonzero(done):
            self.finished.append((float(self.totals[index]), int(self.lengths[index])))
            self.totals[index], self.lengths[index] = 0, 0
        return observation, reward * self.reward_scale, done, infos

    def take(self) -> dict[str, float]:
        """Number, mean return in percent and mean length of the episodes finished since the last call."""
        finished, self.finished = self.finished, []
        if not finished:
            return {"episodes": 0.0}
        returns, lengths = zip(*finished, strict=True)
        return {
            "episodes": float(len(finished)),
            "return_percent": float(np.mean(returns)),
            "episode_length": float(np.mean(lengths)),
        }
