"""Let a trained agent order the passes of a program: one episode by its first choices, others by chance.

    found = play(agent, transitions, "gpt2/step", PlayConfig(episodes=4), seed=0)
    found.facts.operations, found.passes

It has found the best program of all its episodes, as a search has. What is best is kept, so that a drawn episode risks
nothing: it never stops, sometimes tries what the agent thinks little of, and often begins on the way to the best
program so far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from rlflow.environments.pass_ordering_env import Observation, PassOrderingConfig, PassOrderingEnv
from rlflow.errors import InputError
from rlflow.passes.search import Found
from rlflow.passes.transitions import Transitions


@dataclass(frozen=True)
class PlayConfig:
    """The number of episodes, and how drawn ones look around.

    explore: the probability that an action is drawn evenly and not as the agent prefers. returning: the probability
    that an episode begins at a program on the way to the best so far and not at the start.
    """

    episodes: int = 1
    explore: float = 0.0
    returning: float = 0.0

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise InputError("an agent plays at least one episode")
        if not (0.0 <= self.explore <= 1.0 and 0.0 <= self.returning <= 1.0):
            raise InputError("explore and returning are probabilities, from 0 to 1")


class Chooser(Protocol):
    """Prefers actions in the states of one episode, step after step; it may remember what it has seen of it."""

    def probabilities(
        self, env: PassOrderingEnv, observation: Observation, mask: np.ndarray, taken: int | None
    ) -> np.ndarray:
        """The probability of each action in this state, (A + 1,) float64, 0 where the mask (A + 1,) is False.

        taken: the action that led here; None at the beginning.
        """
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


@dataclass(frozen=True)
class Untrained:
    """An agent that has learned nothing and prefers nothing: what looking around is worth by itself."""

    episode: PassOrderingConfig

    def chooser(self) -> Chooser:
        """Return what plays an episode."""
        return self

    def probabilities(
        self, env: PassOrderingEnv, observation: Observation, mask: np.ndarray, taken: int | None
    ) -> np.ndarray:
        """The same for every action that the mask admits."""
        return mask / mask.sum()


def play(agent: Playing, transitions: Transitions, source: str, config: PlayConfig, *, seed: int) -> Found:
    """The best program of some episodes from one source, with its passes and how many were run."""
    draw = np.random.default_rng(seed)
    env = PassOrderingEnv(transitions, [source], config=agent.episode)
    best, tried = Found(transitions.start(source)), 0
    for number in range(config.episodes):
        returns = number > 0 and draw.random() < config.returning
        way = best.passes[: int(draw.integers(len(best.passes) + 1))] if returns else ()
        observation, _ = env.reset(options={"passes": way})
        if number == 0:
            tried += _by_first_choices(env, agent.chooser(), observation)
        else:
            tried += _drawn(env, agent.chooser(), observation, config.explore, draw)
        if env.best.operations < best.facts.operations:
            best = Found(env.best, tuple(step.name for step in env.record().steps))
    return replace(best, tried=tried)


def _by_first_choices(env: PassOrderingEnv, chooser: Chooser, observation: Observation) -> int:
    """Play an episode by what the agent prefers, until it stops; returns how many passes were run."""
    tried, ended, action = 0, False, None
    while not ended:
        action = int(chooser.probabilities(env, observation, env.action_masks(), action).argmax())
        observation, _, terminated, truncated, _ = env.step(action)
        ended = terminated or truncated
        tried += action != env.stop
    return tried


def _drawn(
    env: PassOrderingEnv, chooser: Chooser, observation: Observation, explore: float, draw: np.random.Generator
) -> int:
    """Play an episode to its horizon, or until every pass was tried in vain; returns how many passes were run."""
    tried, ended, action = 0, False, None
    while not ended:
        mask = env.action_masks()
        mask[env.stop] = not mask[: env.stop].any()
        preferred = chooser.probabilities(env, observation, mask, action)
        likely = (1.0 - explore) * preferred + explore * mask / mask.sum()
        action = int(draw.choice(len(likely), p=likely / likely.sum()))
        observation, _, terminated, truncated, _ = env.step(action)
        ended = terminated or truncated
        tried += action != env.stop
    return tried
