"""Collect episodes over match tokens in the real process, for V and M to be fitted on.

    rollouts = collect_tokens(process, "bert", CollectionConfig(episodes=60), seed=0, library_hash=library.hash)

An episode begins somewhere on greedy's descent, since that is where a policy will have to do better, and mixes three
ways of going on: the rewrite that saves most, one next to the last, and any. All kinds of matches of every state are
labelled with what they save, so one step teaches a hundred savings.

The invariant: episode k depends on (seed, k) alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rlflow.environments.token_process import Situation, TokenProcess
from rlflow.representation.match_token import MatchToken
from rlflow.representation.token_rollouts import (
    FAR_AWAY,
    TokenEpisode,
    TokenRollouts,
    TokenState,
    TokenStep,
    nearness_after,
)


@dataclass(frozen=True)
class TokenCollectionConfig:
    """Episodes of at most `steps` rewrites.

    `from_start` of them begin at the start, the others on greedy's descent. At each step of an episode, with one of
    `greedy` as probability, drawn for the episode, the rewrite that saves most is taken; else, with probability
    `local`, one within `nearby` edges of the last; else any.
    """

    episodes: int = 60
    steps: int = 25
    from_start: float = 0.4
    greedy: tuple[float, ...] = (0.0, 0.3, 0.7)
    local: float = 0.5
    nearby: int = 1


class TokenBank:
    """Distinct tokens by their keys, in the order in which they were met."""

    def __init__(self) -> None:
        self.tokens: list[MatchToken] = []
        self._places: dict[bytes, int] = {}

    def state(self, situation: Situation) -> TokenState:
        """The situation, with its tokens told by their places in the bank."""
        token = np.array([self._place(token) for token in situation.kinds.tokens], dtype=np.int64)
        return TokenState(token, situation.kinds.counts, situation.distance, situation.saving, situation.cost)

    def _place(self, token: MatchToken) -> int:
        place = self._places.setdefault(token.key, len(self.tokens))
        if place == len(self.tokens):
            self.tokens.append(token)
        return place


Choose = Callable[[Situation, np.ndarray, np.random.Generator], int]
"""Choose a kind of match, given how near each kind is to the last rewrite (K,) int8."""


def play(
    process: TokenProcess, bank: TokenBank, start: Situation, choose: Choose, steps: int, rng: np.random.Generator
) -> TokenEpisode:
    """Play one episode of at most `steps` rewrites, which ends early where there is no match."""
    situation, states, taken = start, [bank.state(start)], list[TokenStep]()
    near = np.full(len(start.kinds.tokens), FAR_AWAY, dtype=np.int8)
    while len(taken) < steps and len(situation.kinds.tokens):
        situation, step = process.step(situation, choose(situation, near, rng))
        states.append(bank.state(situation))
        near = nearness_after(states[-2], step, states[-1])
        taken.append(step)
    return TokenEpisode(0, process.unit_percent, tuple(states), tuple(taken), terminated=False)


def collect_tokens(
    process: TokenProcess,
    graph: str,
    config: TokenCollectionConfig,
    *,
    seed: int,
    library_hash: str,
    on_episode: Callable[[int, TokenEpisode], None] | None = None,
) -> TokenRollouts:
    """Play `config.episodes` episodes; on_episode(number, episode) after each."""
    bank, descent, episodes = TokenBank(), list(greedy_descent(process)), list[TokenEpisode]()
    for number in range(config.episodes):
        rng = np.random.default_rng([seed, number])
        start = descent[0] if rng.random() < config.from_start else descent[int(rng.integers(len(descent)))]
        episode = play(process, bank, start, _mixed(config, float(rng.choice(config.greedy))), config.steps, rng)
        episodes.append(episode)
        if on_episode is not None:
            on_episode(number, episode)
    return TokenRollouts(
        tuple(bank.tokens), tuple(episodes), (graph,), process.vocabulary, library_hash, process.evaluations
    )


def greedy_descent(process: TokenProcess) -> Iterator[Situation]:
    """Yield the situations on greedy's way, the start first."""
    situation = process.start()
    yield situation
    while len(situation.saving) and situation.saving.max() > 1e-6:
        situation, _ = process.step(situation, int(situation.saving.argmax()))
        yield situation


def _mixed(config: TokenCollectionConfig, greedy: float) -> Choose:
    def choose(situation: Situation, near: np.ndarray, rng: np.random.Generator) -> int:
        if rng.random() < greedy:
            return int(situation.saving.argmax())
        nearby = np.flatnonzero(near <= config.nearby)
        pool = nearby if len(nearby) and rng.random() < config.local else np.arange(len(near))
        return int(rng.choice(pool))

    return choose
