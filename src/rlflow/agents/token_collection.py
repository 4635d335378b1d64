"""Collect episodes over match tokens in the real process, for V and M to be fitted on.

    collected = collect_tokens(process, "bert", TokenCollectionConfig(episodes=60), seed=0, library_hash=library.hash)
    collected.rollouts

An episode begins somewhere on greedy's descent, since that is where a policy will have to do better, or on the way
that experts would likely go. It mixes three kinds of steps: the class of matches that saves most, or that an expert
most likely takes, one next to the last, and any. All classes of every state are labelled with what they save, so one
step teaches a hundred savings.

Several workers may play some of the episodes each, in processes or on machines of their own, and leave them in one
folder. A process that collects all of them plays what is missing there.

The invariant: episode k depends on (seed, k) alone, so neither a kill nor the number of workers shows in the rollouts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rlflow.agents.episode_shards import played_once
from rlflow.environments.end_to_end import EndToEnd, latency_saved
from rlflow.environments.transition import Transition
from rlflow.kept import Kept, fingerprint
from rlflow.processes.token_process import MatchLevelState, TokenProcess
from rlflow.representation import token_archive
from rlflow.representation.token_rollouts import (
    FAR_AWAY,
    TokenEpisode,
    TokenRollouts,
    TokenState,
    TokenStep,
    nearness_after,
)
from rlflow.representation.token_shards import TokenBank, merged

_EFFORT = "effort.json"
_LEAST_SAVING_PERCENT = 1e-6  # below which a saving is rounding


@dataclass(frozen=True)
class TokenCollectionConfig:
    """Episodes of at most `steps` choices, each of all matches of a class.

    `from_start` of them begin at the start, `from_end` where a way ends, the others anywhere on a way. At each step of
    an episode, with one of `led` as probability, drawn for the episode, the class that its leader prefers is taken;
    else, with probability `local`, one within `nearby` edges of the last; else any. The way of an expert has
    `expert_steps` choices.
    """

    episodes: int = 60
    steps: int = 25
    from_start: float = 0.4
    from_end: float = 0.0
    led: tuple[float, ...] = (0.0, 0.3, 0.7)
    local: float = 0.5
    nearby: int = 1
    expert_steps: int = 30


@dataclass(frozen=True, eq=False)
class Collected:
    """Rollouts and what they took, by all that played them.

    rewrites: those that were carried out to know all savings; workers do not share what they have tried. seconds:
    of wall time, summed over workers.
    """

    rollouts: TokenRollouts
    rewrites: int
    seconds: float

    def save(self, folder: Path) -> None:
        """Write the rollouts, and what they took."""
        token_archive.save(self.rollouts, folder)
        (folder / _EFFORT).write_text(json.dumps({"rewrites": self.rewrites, "seconds": self.seconds}))

    @classmethod
    def load(cls, folder: Path) -> Collected:
        """Read what `save` wrote."""
        return cls(token_archive.load(folder), **json.loads((folder / _EFFORT).read_text()))


def put_together(parts: Sequence[Collected]) -> Collected:
    """Return the episodes of all parts, one of each in turn; `InputError` if they do not belong together."""
    return Collected(
        merged([part.rollouts for part in parts]),
        sum(part.rewrites for part in parts),
        sum(part.seconds for part in parts),
    )


Choose = Callable[[MatchLevelState, np.ndarray, np.random.Generator], int]
"""Choose a class of match, given how near each class is to the last rewrite (K,) int8."""

Prefer = Callable[[MatchLevelState], np.ndarray]
"""A number (K,) for each class, the greatest of the one that is preferred."""


class Expert(NamedTuple):
    """A preference among classes that was learned elsewhere, with a digest that tells it from others."""

    digest: str
    prefers: Prefer


def collect_tokens(
    process: TokenProcess,
    graph: str,
    config: TokenCollectionConfig,
    *,
    seed: int,
    library_hash: str,
    expert: Expert | None = None,
    timed: EndToEnd | None = None,
    numbers: Sequence[int] | None = None,
    checkpoint: Path | None = None,
    on_episode: Callable[[int, TokenEpisode], None] | None = None,
) -> Collected:
    """Collect `config.episodes` episodes, or those of them that have these numbers.

    expert: episodes begin on its way as on greedy's, and it leads half of them. timed: times the graphs on the way, so
    that the rollouts tell of latency, too. checkpoint: a folder; episodes that lie there already are not played again,
    by any process, unless seed, settings, expert, rules or vocabulary were others.
    on_episode(number, episode) after each that is played.
    """
    nothing = TokenRollouts((), (), (), (graph,), process.vocabulary, library_hash)
    leaders = [_saving_of_all] if expert is None else [_saving_of_all, expert.prefers]
    visited = list[list[MatchLevelState]]()

    def one(number: int) -> Collected:
        nonlocal visited
        started, rewrites, bank = time.perf_counter(), process.rewrites, TokenBank()
        visited = visited or [list(way) for way in _ways(process, expert, config.expert_steps)]
        episode = _episode(process, bank, visited, leaders, config, np.random.default_rng([seed, number]), timed)
        rollouts = replace(nothing, tokens=tuple(bank.tokens), rule_of=tuple(bank.rule_of), episodes=(episode,))
        return Collected(rollouts, process.rewrites - rewrites, time.perf_counter() - started)

    def told(number: int, part: Collected) -> None:
        if on_episode is not None:
            on_episode(number, part.rollouts.episodes[0])

    shards = None
    if checkpoint is not None:
        of_rules = (graph, library_hash, process.vocabulary)
        run = fingerprint(
            seed, replace(config, episodes=0), expert and expert.digest, timed and timed.config, *of_rules
        )
        shards = Kept(checkpoint / run, Collected.save, Collected.load)
    asked = range(config.episodes) if numbers is None else numbers
    return put_together([Collected(nothing, 0, 0.0), *played_once(asked, shards, one, told)])


def _ways(process: TokenProcess, expert: Expert | None, expert_steps: int) -> Iterator[Iterator[MatchLevelState]]:
    """Yield the ways on which episodes begin."""
    yield greedy_descent(process)
    if expert is not None:
        yield expert_way(process, expert.prefers, expert_steps)


def _episode(
    process: TokenProcess,
    bank: TokenBank,
    ways: Sequence[Sequence[MatchLevelState]],
    leaders: Sequence[Prefer],
    config: TokenCollectionConfig,
    rng: np.random.Generator,
    timed: EndToEnd | None,
) -> TokenEpisode:
    where, way = rng.random(), ways[int(rng.integers(len(ways)))]
    if where < config.from_start:
        start = way[0]
    elif where < 1 - config.from_end:
        start = way[int(rng.integers(len(way)))]
    else:
        start = way[-1]
    choose = _mixed(config, leaders[int(rng.integers(len(leaders)))], float(rng.choice(config.led)))
    return play(process, bank, start, choose, config.steps, rng, timed)


def play(
    process: TokenProcess,
    bank: TokenBank,
    start: MatchLevelState,
    choose: Choose,
    steps: int,
    rng: np.random.Generator,
    timed: EndToEnd | None = None,
) -> TokenEpisode:
    """Play one episode of at most `steps` choices, which ends early where there is no match."""
    visited, states, taken = [start], [state_of(start, bank)], list[TokenStep]()
    near = np.full(len(start.classes.tokens), FAR_AWAY, dtype=np.int8)
    while len(taken) < steps and len(visited[-1].classes.tokens):
        after, step, _ = process.step(visited[-1], choose(visited[-1], near, rng))
        visited.append(after)
        states.append(state_of(after, bank))
        near = nearness_after(states[-2].token, step, states[-1].token)
        ended = len(taken) + 1 == steps or not len(after.classes.tokens)
        taken.append(_with_savings_beside(step, process, visited, ended, timed))
    return TokenEpisode(0, process.unit_percent, tuple(states), tuple(taken), terminated=False)


def _with_savings_beside(
    step: TokenStep, process: TokenProcess, visited: Sequence[MatchLevelState], ended: bool, timed: EndToEnd | None
) -> TokenStep:
    """Write down what a step saved beside the price, in percent of the original graph's.

    A latency is measured against the episode's beginning, and counts as much less as that costs less.
    """
    memory_saved = Transition([process.origin, *visited[-2:]], ended).change.memory_saved
    latency = latency_saved(timed, Transition(visited, ended)) * visited[0].percent / 100.0
    return replace(step, memory_saved=memory_saved, latency_saved=latency)


def state_of(state: MatchLevelState, bank: TokenBank) -> TokenState:
    """Write a state down, with its tokens told by their places in the bank."""
    classes = state.classes
    rules = (state.match(state.first(match_class)).rule.id for match_class in range(len(classes.tokens)))
    token = [bank.place(token, rule) for token, rule in zip(classes.tokens, rules, strict=True)]
    places = np.array(token, dtype=np.int64)
    return TokenState(places, classes.counts, classes.apart, state.distance, state.saving, state.percent, state.hash)


def greedy_descent(process: TokenProcess) -> Iterator[MatchLevelState]:
    """Yield the states on greedy's way, the start first; it ends where the class that promises most saves nothing."""
    state = process.start()
    yield state
    while state.saving_of_all.max(initial=0.0) > _LEAST_SAVING_PERCENT:
        state, step, _ = process.step(state, int(state.saving_of_all.argmax()))
        if step.reward <= _LEAST_SAVING_PERCENT:
            return
        yield state


def expert_way(process: TokenProcess, prefers: Prefer, steps: int) -> Iterator[MatchLevelState]:
    """Yield the states on the way of an expert, the start first: the likeliest class that leads to a new graph."""
    state = process.start()
    seen = {state.hash}
    yield state
    for _ in range(steps):
        following = (process.step(state, int(number)).state for number in np.argsort(-prefers(state), kind="stable"))
        new = next((after for after in following if after.hash not in seen), None)
        if new is None:
            return
        state = new
        seen.add(state.hash)
        yield state


def _saving_of_all(state: MatchLevelState) -> np.ndarray:
    return state.saving_of_all


def _mixed(config: TokenCollectionConfig, leader: Prefer, led: float) -> Choose:
    def choose(state: MatchLevelState, near: np.ndarray, rng: np.random.Generator) -> int:
        if rng.random() < led:
            return int(leader(state).argmax())
        nearby = np.flatnonzero(near <= config.nearby)
        pool = nearby if len(nearby) and rng.random() < config.local else np.arange(len(near))
        return int(rng.choice(pool))

    return choose
