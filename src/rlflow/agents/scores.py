"""Scores of an agent: the return of its episodes in a dream, and the improvement that they bring on a graph."""

from collections.abc import Callable
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from rlflow.agents.player import Controller
from rlflow.agents.selection import Trial
from rlflow.environments.episode import Episode as RealEpisode
from rlflow.environments.rewards import Reward
from rlflow.processes.process import Process


def mean_return(env: VecEnv, act: Callable[[Any], np.ndarray]) -> float:
    """Mean return of one episode in each environment of the batch; `act` chooses actions for their observations."""
    observation = env.reset()
    returns, running = np.zeros(env.num_envs), np.ones(env.num_envs, dtype=bool)
    while running.any():
        observation, reward, done, _ = env.step(act(observation))
        returns += reward * running
        running &= ~done
    return float(returns.mean())


def episode_return(process: Process[Any, Any], controller: Controller, max_steps: int, reward: Reward) -> Trial:
    """The return, in percent, of one episode of the controller's most probable actions, with its rewrites.

    A choice that there is not is to terminate, as for a player of episodes.
    """
    episode = RealEpisode(process, reward, max_steps, [process.start()])
    earned, rewrites, ended = 0.0, 0, False
    while not ended:
        before, choice = episode.state, controller.choose(process.observe(episode.state))
        goes_on = choice in process.choices(before)
        outcome = episode.act(choice if goes_on else None)
        rewrites += len(process.way(before, choice, episode.state)) if goes_on else 0
        earned, ended = earned + outcome.reward, outcome.ended
    return Trial(earned, rewrites)
