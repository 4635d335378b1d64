"""Let a trained agent order the passes of a program: one episode by its first choices, others by chance.

    found = play(agent, transitions, "gpt2/step", PlayConfig(episodes=4), seed=0)
    found.facts.operations, found.passes

It has found the best program of all its episodes, as a search has. What is best is kept, so that a drawn episode risks
nothing: it never stops, sometimes tries what the agent thinks little of, and often begins on the way to the best
program so far. What a pass makes of a program is asked once, as searches do, and what changes nothing is not tried
again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from rlflow.errors import InputError
from rlflow.passes.environment.pass_ordering_env import Observation, PassOrderingConfig, PassOrderingEnv
from rlflow.passes.search import Found
from rlflow.passes.transitions import Transitions


@dataclass(frozen=True)
class PlayConfig:
    """The number of episodes, and how drawn ones look around.

    max_passes: after so many runs of a pass it is over, whatever is left of the episodes; None: after the episodes.
    explore: the probability that an action is drawn evenly and not as the agent prefers. returning: the probability
    that an episode begins at a program on the way to the best so far and not at the start.
    """

    episodes: int = 1
    max_passes: int | None = None
    explore: float = 0.0
    returning: float = 0.0

    def __post_init__(self) -> None:
        if self.episodes < 1 or (self.max_passes is not None and self.max_passes < 1):
            raise InputError("an agent plays at least one episode, and runs at least one pass")
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
    game = _Game(PassOrderingEnv(transitions, [source], config=agent.episode), config)
    best = Found(transitions.start(source))
    for number in range(config.episodes):
        returns = number > 0 and draw.random() < config.returning
        way = best.passes[: int(draw.integers(len(best.passes) + 1))] if returns else ()
        game.episode(agent.chooser(), way, draw if number > 0 else None)
        if game.env.best.operations < best.facts.operations:
            best = Found(game.env.best, tuple(step.name for step in game.env.record().steps))
        if game.over:
            break
    return replace(best, tried=len(game.run))


class _Game:
    """The episodes on one source, and what is known by them: the runs of passes, and those that changed nothing."""

    def __init__(self, env: PassOrderingEnv, config: PlayConfig) -> None:
        self.env, self.config = env, config
        self.run: set[tuple[str, int]] = set()  # a program's key, and the pass
        self.idle: dict[str, list[int]] = {}  # passes that change nothing, by the program's key

    @property
    def over(self) -> bool:
        """True after as many runs of a pass as are granted."""
        return self.config.max_passes is not None and len(self.run) >= self.config.max_passes

    def episode(self, chooser: Chooser, way: tuple[str, ...], draw: np.random.Generator | None) -> None:
        """Play one after the passes of `way`: by first choices until the agent stops, or drawn to the horizon."""
        observation, _ = self.env.reset(options={"passes": way})
        ended, action = False, None
        while not ended and not self.over:
            mask = self.env.action_masks() if draw is None else self._open()
            preferred = chooser.probabilities(self.env, observation, mask, action)
            action = int(preferred.argmax()) if draw is None else self._drawn(preferred, mask, draw)
            before = self.env.facts.key
            observation, _, terminated, truncated, told = self.env.step(action)
            ended = terminated or truncated
            if action != self.env.stop:
                self._note(before, action, changed=told["changed"])

    def _open(self) -> np.ndarray:
        """The passes that are not known to change nothing; stop only where there is none."""
        mask = self.env.action_masks()
        mask[self.idle.get(self.env.facts.key, [])] = False
        mask[self.env.stop] = not mask[: self.env.stop].any()
        return mask

    def _drawn(self, preferred: np.ndarray, mask: np.ndarray, draw: np.random.Generator) -> int:
        likely = (1.0 - self.config.explore) * preferred + self.config.explore * mask / mask.sum()
        return int(draw.choice(len(likely), p=likely / likely.sum()))

    def _note(self, key: str, action: int, *, changed: bool) -> None:
        if (key, action) not in self.run and not changed:
            self.idle.setdefault(key, []).append(action)
        self.run.add((key, action))
