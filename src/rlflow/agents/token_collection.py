"""Collect episodes over match tokens in the real process, for V and M to be fitted on.

    rollouts = collect_tokens(process, "bert", TokenCollectionConfig(episodes=60), seed=0, library_hash=library.hash)

An episode begins somewhere on greedy's descent, since that is where a policy will have to do better, and mixes three
ways of going on: the rewrite that saves most, one next to the last, and any. All kinds of matches of every state are
labelled with what they save, so one step teaches a hundred savings.

Several workers play a share of the episodes each, in processes or on machines of their own, and
`representation.token_shards.merged` puts their shards together.

The invariant: episode k depends on (seed, k) alone, so neither a kill nor the number of workers shows in the episodes.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rlflow.atomic_file import written_whole
from rlflow.environments.token_process import Situation, TokenProcess
from rlflow.errors import InputError
from rlflow.representation import token_archive
from rlflow.representation.token_rollouts import (
    FAR_AWAY,
    TokenEpisode,
    TokenRollouts,
    TokenState,
    TokenStep,
    nearness_after,
)
from rlflow.representation.token_shards import TokenBank

CHECKPOINT_INTERVAL_S = 60.0

_LEAST_SAVING_PERCENT = 1e-6  # below which a saving is rounding

log = logging.getLogger(__name__)


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


@dataclass(frozen=True)
class Share:
    """The episodes of one worker among several: worker, worker + workers, worker + 2 workers, ..."""

    worker: int = 0
    workers: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.worker < self.workers:
            raise InputError(f"there is no worker {self.worker} among {self.workers}; they are counted from 0")


Choose = Callable[[Situation, np.ndarray, np.random.Generator], int]
"""Choose a kind of match, given how near each kind is to the last rewrite (K,) int8."""


def collect_tokens(
    process: TokenProcess,
    graph: str,
    config: TokenCollectionConfig,
    *,
    seed: int,
    library_hash: str,
    share: Share = Share(),
    checkpoint: Path | None = None,
    on_episode: Callable[[int, TokenEpisode], None] | None = None,
) -> TokenRollouts:
    """Play those of `config.episodes` episodes that are a worker's share.

    checkpoint: a folder; if it holds episodes of the same share, collected with the same seed, settings, rules and
    vocabulary, the others are added to them. on_episode(number, episode) after each.
    """
    nothing = TokenRollouts((), (), (), (graph,), process.vocabulary, library_hash, 0)
    run = {"seed": seed, **asdict(share), "config": asdict(replace(config, episodes=0))}
    before = nothing if checkpoint is None else _resumed(checkpoint, nothing, run)
    bank, episodes, descent = TokenBank.of(before), list(before.episodes), list[Situation]()

    def collected() -> TokenRollouts:
        return replace(
            before,
            tokens=tuple(bank.tokens),
            rule_of=tuple(bank.rule_of),
            episodes=tuple(episodes),
            evaluations=before.evaluations + process.evaluations,
        )

    saved = time.monotonic()
    for number in range(share.worker, config.episodes, share.workers)[len(episodes) :]:
        descent = descent or list(greedy_descent(process))
        rng = np.random.default_rng([seed, number])
        start = descent[0] if rng.random() < config.from_start else descent[int(rng.integers(len(descent)))]
        episode = play(process, bank, start, _mixed(config, float(rng.choice(config.greedy))), config.steps, rng)
        episodes.append(episode)
        if on_episode is not None:
            on_episode(number, episode)
        if checkpoint is not None and time.monotonic() - saved >= CHECKPOINT_INTERVAL_S:
            _save(collected(), run, checkpoint)
            saved = time.monotonic()

    rollouts = collected()
    if checkpoint is not None:
        _save(rollouts, run, checkpoint)
    return rollouts


def play(
    process: TokenProcess, bank: TokenBank, start: Situation, choose: Choose, steps: int, rng: np.random.Generator
) -> TokenEpisode:
    """Play one episode of at most `steps` rewrites, which ends early where there is no match."""
    situation, states, taken = start, [state_of(start, bank)], list[TokenStep]()
    near = np.full(len(start.kinds.tokens), FAR_AWAY, dtype=np.int8)
    while len(taken) < steps and len(situation.kinds.tokens):
        situation, step = process.step(situation, choose(situation, near, rng))
        states.append(state_of(situation, bank))
        near = nearness_after(states[-2].token, step, states[-1].token)
        taken.append(step)
    return TokenEpisode(0, process.unit_percent, tuple(states), tuple(taken), terminated=False)


def state_of(situation: Situation, bank: TokenBank) -> TokenState:
    """Write a situation down, with its tokens told by their places in the bank."""
    kinds = situation.kinds
    rules = (kinds.matches[situation.first(kind)][1].rule.id for kind in range(len(kinds.tokens)))
    token = [bank.place(token, rule) for token, rule in zip(kinds.tokens, rules, strict=True)]
    return TokenState(
        np.array(token, dtype=np.int64), kinds.counts, situation.distance, situation.saving, situation.cost
    )


def greedy_descent(process: TokenProcess) -> Iterator[Situation]:
    """Yield the situations on greedy's way, the start first."""
    situation = process.start()
    yield situation
    while situation.saving.max(initial=0.0) > _LEAST_SAVING_PERCENT:
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


def _save(rollouts: TokenRollouts, run: dict[str, Any], folder: Path) -> None:
    token_archive.save(rollouts, folder)
    with written_whole(folder / "collection.json") as draft:
        draft.write_text(json.dumps(run) + "\n")


def _resumed(folder: Path, nothing: TokenRollouts, run: dict[str, Any]) -> TokenRollouts:
    """The episodes in a folder, or none if they are not those of this run."""
    if not (folder / "collection.json").exists():
        return nothing
    try:
        found = token_archive.load(folder)
        same_run = json.loads((folder / "collection.json").read_text()) == json.loads(json.dumps(run))
    except (InputError, OSError, ValueError) as error:
        log.warning("%s; starting afresh", error)
        return nothing
    parts = ("graphs", "vocabulary", "library_hash")
    if not same_run or any(getattr(found, part) != getattr(nothing, part) for part in parts):
        log.warning("%s was collected with another seed, settings, rules or vocabulary; starting afresh", folder)
        return nothing
    return found
