"""Let a trained agent order the passes of a program: one episode by its first choices, others by chance.

    found = play(agent, transitions, "gpt2/step", episodes=4, seed=0)
    found.facts.operations, found.passes

It has found the best program of all its episodes, as a search has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from rlflow.environments.pass_ordering_env import Observation, PassOrderingConfig, PassOrderingEnv
from rlflow.errors import InputError
from rlflow.passes.search import Found
from rlflow.passes.transitions import Transitions


class Chooser(Protocol):
    """Chooses the actions of one episode, step after step; it may remember what it has seen of it."""

    def choose(self, env: PassOrderingEnv, observation: Observation, draw: np.random.Generator | None) -> int:
        """The action in this state: the agent's first choice or, with a generator, a drawn one."""
        ...


class Playing(Protocol):
    """A trained agent."""

    @property
    def episode(self) -> PassOrderingConfig:
        """The episodes that it was trained for."""
        ...

    def chooser(self) -> Chooser:
        """Return what plays an episode."""
        ...


def play(agent: Playing, transitions: Transitions, source: str, *, episodes: int, seed: int) -> Found:
    """The best program of so many episodes from one source, with its passes and how many were run."""
    draw = np.random.default_rng(seed)
    env = PassOrderingEnv(transitions, [source], config=agent.episode)
    best, tried = None, 0
    for number in range(episodes):
        tried += _played(env, agent.chooser(), draw if number else None)
        found = Found(env.best, tuple(step.name for step in env.record().steps))
        best = found if best is None or found.facts.operations < best.facts.operations else best
    if best is None:
        raise InputError("an agent plays at least one episode")
    return replace(best, tried=tried)


def _played(env: PassOrderingEnv, chooser: Chooser, draw: np.random.Generator | None) -> int:
    """Play an episode; returns how many passes were run."""
    observation, _ = env.reset()
    tried, ended = 0, False
    while not ended:
        action = chooser.choose(env, observation, draw)
        observation, _, terminated, truncated, _ = env.step(action)
        ended = terminated or truncated
        tried += action != env.stop
    return tried
