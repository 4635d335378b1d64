"""Train an agent to order passes on real compilers, without a model of them, and keep it on disk.

    agent = train(config, transitions, sources, episode, seed=0)
    found = play(agent, transitions, "gpt2/step", PlayConfig(episodes=4), seed=0)   (`rlflow.passes.agents.playing`)

It never chooses a pass that it has just seen change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from rlflow.errors import InputError
from rlflow.passes.agents.algorithms import algorithm_of, new_model, preferences
from rlflow.passes.agents.pass_agent_config import PassAgentConfig
from rlflow.passes.agents.playing import Chooser
from rlflow.passes.environment.pass_ordering_env import Observation, PassOrderingConfig, PassOrderingEnv
from rlflow.passes.environment.shaping import PotentialShaping, by_name
from rlflow.passes.transitions import Transitions
from rlflow.world_model.bundle import Arguments, Bundle

OnProgress = Callable[[float, str], None]

_BUNDLE = Bundle("agent", "agent", "train one for the passes of this backend", indent=1)


@dataclass(frozen=True)
class _Arguments(Arguments):
    """All of an agent but its weights."""

    config: PassAgentConfig
    episode: PassOrderingConfig
    curve: tuple[float, ...]


@dataclass(frozen=True)
class PassAgent:
    """A trained model with the settings by which it was trained, and the return of its episodes at each tenth."""

    model: BaseAlgorithm
    config: PassAgentConfig
    episode: PassOrderingConfig
    curve: tuple[float, ...] = ()

    def chooser(self) -> Chooser:
        """Return what plays an episode."""
        return _Preferring(self)


def train(
    config: PassAgentConfig,
    transitions: Transitions,
    sources: Sequence[str],
    episode: PassOrderingConfig,
    *,
    seed: int,
    on_progress: OnProgress | None = None,
) -> PassAgent:
    """Train an agent on programs drawn from `sources`; the same seed gives the same agent."""
    episode = _observed(config, episode)
    make = partial(_environment, config, transitions, tuple(sources), episode)
    envs = DummyVecEnv([make] * config.num_envs)
    envs.seed(seed)
    model = new_model(config, VecMonitor(envs), seed=seed)
    course = _Course(config.total_steps, on_progress)
    model.learn(config.total_steps, callback=course)
    return PassAgent(model, config, episode, tuple(course.curve))


def save(agent: PassAgent, folder: Path) -> None:
    """Write the weights as safetensors, and the settings as JSON."""
    _BUNDLE.save(agent.model.policy, _Arguments(agent.config, agent.episode, agent.curve), folder)


def load(folder: Path, transitions: Transitions) -> PassAgent:
    """Read what `save` wrote, for a backend with the same passes and operations.

    Raises `InputError` if there is no agent, or if it is one for other passes.
    """
    with _BUNDLE.reading(folder):
        known = _Arguments.of_description(_BUNDLE.description(folder))
        environment = partial(_environment, known.config, transitions, ("",), known.episode)
        model = new_model(known.config, DummyVecEnv([environment] * known.config.num_envs), seed=0)
        _BUNDLE.restore(model.policy, folder)
    return PassAgent(model, known.config, known.episode, known.curve)


def _observed(config: PassAgentConfig, episode: PassOrderingConfig) -> PassOrderingConfig:
    """The episode with what the agent is to observe: costs only if somebody looks at them.

    `InputError` if nobody can: these agents read vectors.
    """
    if "graph" in episode.observation:
        raise InputError("this agent reads vectors: leave graph out of episode.observation, or choose world_model")
    if config.cost_features == "none":
        return replace(episode, observation=tuple(name for name in episode.observation if name != "cost"))
    if "cost" not in episode.observation:
        raise InputError("the cost analysis is to be looked at, but not observed: add cost to episode.observation")
    return episode


def _environment(
    config: PassAgentConfig, transitions: Transitions, sources: tuple[str, ...], episode: PassOrderingConfig
) -> gymnasium.Env[Any, Any]:
    env = PassOrderingEnv(transitions, sources, config=episode)
    return env if config.potential is None else PotentialShaping(env, by_name(config.potential), gamma=config.gamma)


class _Preferring:
    """Chooses by the preferences of a network, which look at nothing but the observation."""

    def __init__(self, agent: PassAgent) -> None:
        self.agent = agent

    def probabilities(
        self, env: PassOrderingEnv, observation: Observation, mask: np.ndarray, taken: int | None
    ) -> np.ndarray:
        """A policy's; action values are no logarithms, so the best action has all."""
        preferred = np.where(mask, preferences(self.agent.model, observation), -np.inf)
        if not algorithm_of(self.agent.config.algorithm).actor_critic:
            return np.eye(len(mask))[preferred.argmax()]
        weights = np.exp(preferred - preferred.max())
        return weights / weights.sum()


class _Course(BaseCallback):
    """Tells how far training is, and keeps the mean return of the episodes of each tenth of it."""

    def __init__(self, total_steps: int, on_progress: OnProgress | None) -> None:
        super().__init__()
        self.total_steps, self.on_progress = total_steps, on_progress
        self.curve: list[float] = []
        self._returns: list[float] = []

    def _on_step(self) -> bool:
        self._returns += [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        if self.num_timesteps >= (len(self.curve) + 1) * self.total_steps / 10 and self._returns:
            self.curve.append(float(np.mean(self._returns)))
            self._returns.clear()
            if self.on_progress is not None:
                self.on_progress(min(1.0, self.num_timesteps / self.total_steps), f"return {self.curve[-1]:.2f}")
        return True
