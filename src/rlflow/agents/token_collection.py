"""Collect episodes over match tokens in the real process, for V and M to be fitted on.

    collected = collect_tokens(process, "bert", TokenCollectionConfig(episodes=60), seed=0, library_hash=library.hash)
    collected.rollouts

An episode begins somewhere on greedy's descent, since that is where a policy will have to do better, or on the ways of
a policy, which finds what its world model gets wrong. It mixes three kinds of steps: the rewrite that saves most, one
next to the last, and any. All kinds of matches of every state are labelled with what they save, so one step teaches a
hundred savings.

Several workers may play some of the episodes each, in processes or on machines of their own, and leave them in one
folder (`episode_shards`). A process that collects all of them plays what is missing there.

The invariant: episode k depends on (seed, k) alone, so neither a kill nor the number of workers shows in the rollouts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from rlflow.agents.episode_shards import Collected, EpisodeShards, put_together
from rlflow.environments.token_process import MatchLevelState, TokenProcess
from rlflow.representation.token_rollouts import (
    FAR_AWAY,
    TokenEpisode,
    TokenRollouts,
    TokenState,
    TokenStep,
    nearness_after,
)
from rlflow.representation.token_shards import TokenBank
from rlflow.trajectory.record import Trajectory

_LEAST_SAVING_PERCENT = 1e-6  # below which a saving is rounding


@dataclass(frozen=True)
class TokenCollectionConfig:
    """Episodes of at most `steps` rewrites.

    `from_start` of them begin at the start, `from_end` where a way ends, the others anywhere on a way. At each step of
    an episode, with one of `greedy` as probability, drawn for the episode, the rewrite that saves most is taken; else,
    with probability `local`, one within `nearby` edges of the last; else any.
    """

    episodes: int = 60
    steps: int = 25
    from_start: float = 0.4
    from_end: float = 0.0
    greedy: tuple[float, ...] = (0.0, 0.3, 0.7)
    local: float = 0.5
    nearby: int = 1


Choose = Callable[[MatchLevelState, np.ndarray, np.random.Generator], int]
"""Choose a kind of match, given how near each kind is to the last rewrite (K,) int8."""


def collect_tokens(
    process: TokenProcess,
    graph: str,
    config: TokenCollectionConfig,
    *,
    seed: int,
    library_hash: str,
    ways: Sequence[Trajectory] = (),
    numbers: Sequence[int] | None = None,
    checkpoint: Path | None = None,
    on_episode: Callable[[int, TokenEpisode], None] | None = None,
) -> Collected:
    """Collect `config.episodes` episodes, or those of them that have these numbers.

    ways: from the process's start, on which episodes begin; where there are none they begin on greedy's. checkpoint: a
    folder; episodes that lie there already are not played again, by any process, unless seed, settings, ways,
    rules or vocabulary were others. on_episode(number, episode) after each that is played.
    """
    nothing = TokenRollouts((), (), (), (graph,), process.vocabulary, library_hash)
    run = {"seed": seed, "config": asdict(replace(config, episodes=0)), "ways": [way.digest for way in ways]}
    shards = None if checkpoint is None else EpisodeShards.of(checkpoint, run, nothing)
    parts, visited = [Collected(nothing, 0, 0.0)], list[list[MatchLevelState]]()
    for number in range(config.episodes) if numbers is None else numbers:
        part = shards.find(number) if shards is not None else None
        if part is None:
            started, rewrites, bank = time.perf_counter(), process.rewrites, TokenBank()
            visited = visited or [list(process.follow(way)) for way in ways] or [list(greedy_descent(process))]
            episode = _episode(process, bank, visited, config, np.random.default_rng([seed, number]))
            rollouts = replace(nothing, tokens=tuple(bank.tokens), rule_of=tuple(bank.rule_of), episodes=(episode,))
            part = Collected(rollouts, process.rewrites - rewrites, time.perf_counter() - started)
            if shards is not None:
                shards.keep(number, part)
            if on_episode is not None:
                on_episode(number, episode)
        parts.append(part)
    return put_together(parts)


def _episode(
    process: TokenProcess,
    bank: TokenBank,
    ways: Sequence[Sequence[MatchLevelState]],
    config: TokenCollectionConfig,
    rng: np.random.Generator,
) -> TokenEpisode:
    where, way = rng.random(), ways[int(rng.integers(len(ways)))]
    if where < config.from_start:
        start = way[0]
    elif where < 1 - config.from_end:
        start = way[int(rng.integers(len(way)))]
    else:
        start = way[-1]
    return play(process, bank, start, _mixed(config, float(rng.choice(config.greedy))), config.steps, rng)


def play(
    process: TokenProcess, bank: TokenBank, start: MatchLevelState, choose: Choose, steps: int, rng: np.random.Generator
) -> TokenEpisode:
    """Play one episode of at most `steps` rewrites, which ends early where there is no match."""
    state, states, taken = start, [state_of(start, bank)], list[TokenStep]()
    near = np.full(len(start.kinds.tokens), FAR_AWAY, dtype=np.int8)
    while len(taken) < steps and len(state.kinds.tokens):
        state, step = process.step(state, choose(state, near, rng))
        states.append(state_of(state, bank))
        near = nearness_after(states[-2].token, step, states[-1].token)
        taken.append(step)
    return TokenEpisode(0, process.unit_percent, tuple(states), tuple(taken), terminated=False)


def state_of(state: MatchLevelState, bank: TokenBank) -> TokenState:
    """Write a state down, with its tokens told by their places in the bank."""
    kinds = state.kinds
    rules = (state.match(state.first(kind)).rule.id for kind in range(len(kinds.tokens)))
    token = [bank.place(token, rule) for token, rule in zip(kinds.tokens, rules, strict=True)]
    return TokenState(np.array(token, dtype=np.int64), kinds.counts, state.distance, state.saving, state.percent)


def greedy_descent(process: TokenProcess) -> Iterator[MatchLevelState]:
    """Yield the states on greedy's way, the start first."""
    state = process.start()
    yield state
    while state.saving.max(initial=0.0) > _LEAST_SAVING_PERCENT:
        state, _ = process.step(state, int(state.saving.argmax()))
        yield state


def _mixed(config: TokenCollectionConfig, greedy: float) -> Choose:
    def choose(state: MatchLevelState, near: np.ndarray, rng: np.random.Generator) -> int:
        if rng.random() < greedy:
            return int(state.saving.argmax())
        nearby = np.flatnonzero(near <= config.nearby)
        pool = nearby if len(nearby) and rng.random() < config.local else np.arange(len(near))
        return int(rng.choice(pool))

    return choose
