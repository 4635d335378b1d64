"""Scores of an agent: the return of its episodes in a dream, and the improvement that they bring on a graph."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from rlflow.representation.rollouts import Episode


def mean_return(env: VecEnv, act: Callable[[Any], np.ndarray]) -> float:
    """Mean return of one episode in each environment of the batch; `act` chooses actions for their observations."""
    observation = env.reset()
    returns, running = np.zeros(env.num_envs), np.ones(env.num_envs, dtype=bool)
    while running.any():
        observation, reward, done, _ = env.step(act(observation))
        returns += reward * running
        running &= ~done
    return float(returns.mean())


def best_improvement_percent(episodes: Sequence[Episode]) -> float:
    """The improvement of the best graph met in any of the episodes."""
    return float(max(100.0 - episode.cost.min() for episode in episodes))
