"""Ways to choose passes without learning: pipelines, their fixpoint, greedy search, beam search, and chance.

    found = beam(transitions, transitions.start("gpt2/step"), width=4, max_passes=24)
    found.facts.operations, found.passes

What a search has found is the program with the fewest operations that it met, with the passes that lead there; of equal
ones it is the first. Everything goes through `Transitions`, as agents do, so that they compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rlflow.passes.backend import Facts
from rlflow.passes.transitions import Transitions

OnProgress = Callable[[float, str], None]
"""Called with the part done at least, 0 to 1, and a line of text."""

_MOST_ROUNDS = 10
_PATIENCE = 2  # levels of a beam without anything better


@dataclass(frozen=True)
class Found:
    """A program, the passes that lead to it from the start, and how many were run to find it."""

    facts: Facts
    passes: tuple[str, ...] = ()
    tried: int = 0


def sequence(transitions: Transitions, start: Facts, names: Iterable[str]) -> Found:
    """The program after these passes or pipelines; those that change nothing, or fail, are left out of the result."""
    facts, taken, tried = start, [], 0
    for name in names:
        outcome = transitions.step(facts.key, name)
        tried += 1
        if outcome.changed:
            facts = outcome.facts
            taken.append(name)
    return Found(facts, tuple(taken), tried)


def fixpoint(transitions: Transitions, start: Facts, names: Sequence[str]) -> Found:
    """The same passes or pipelines again and again, until a round changes nothing; ten rounds at most."""
    found = Found(start)
    for _ in range(_MOST_ROUNDS):
        more = sequence(transitions, found.facts, names)
        found = Found(more.facts, found.passes + more.passes, found.tried + more.tried)
        if not more.passes:
            break
    return found


def greedy(transitions: Transitions, start: Facts, *, max_passes: int, on_progress: OnProgress | None = None) -> Found:
    """The pass that leaves the fewest operations, again and again, as long as one leaves fewer."""
    found = Found(start)
    for number in range(max_passes):
        _tell(on_progress, number / max_passes, found)
        options = _options(transitions, found)
        better = min(options, key=_operations, default=found)
        if better.facts.operations >= found.facts.operations:
            break
        found = Found(better.facts, better.passes, found.tried + len(_passes(transitions)))
    return found


def beam(
    transitions: Transitions, start: Facts, *, width: int, max_passes: int, on_progress: OnProgress | None = None
) -> Found:
    """The `width` best programs after one pass, two passes, and so on, each program only once.

    Unlike greedy search it goes on through passes that gain nothing, for as long as two levels bring nothing better.
    """
    best, level, seen, tried, since = Found(start), [Found(start)], {start.key}, 0, 0
    for number in range(max_passes):
        _tell(on_progress, number / max_passes, best)
        following: dict[str, Found] = {}
        for found in level:
            tried += len(_passes(transitions))
            for option in _options(transitions, found):
                if option.facts.key not in seen:
                    following.setdefault(option.facts.key, option)
        level = sorted(following.values(), key=_operations)[:width]
        seen.update(found.facts.key for found in level)
        since += 1
        if level and level[0].facts.operations < best.facts.operations:
            best, since = level[0], 0
        if not level or since > _PATIENCE:
            break
    return Found(best.facts, best.passes, tried)


def by_chance(
    transitions: Transitions,
    start: Facts,
    *,
    max_passes: int,
    episodes: int,
    seed: int,
    on_progress: OnProgress | None = None,
) -> Found:
    """The best program of so many episodes of `max_passes` passes drawn with equal probability."""
    draw, best, tried = np.random.default_rng(seed), Found(start), 0
    passes = _passes(transitions)
    for episode in range(episodes):
        _tell(on_progress, episode / episodes, best)
        found = Found(start)
        for number in draw.integers(len(passes), size=max_passes):
            outcome = transitions.step(found.facts.key, passes[number])
            tried += 1
            if outcome.changed:
                found = Found(outcome.facts, (*found.passes, passes[number]))
                best = min(best, found, key=_operations)
    return Found(best.facts, best.passes, tried)


def _passes(transitions: Transitions) -> tuple[str, ...]:
    return transitions.backend.catalogue().passes


def _options(transitions: Transitions, found: Found) -> list[Found]:
    """The programs that passes make of one, in their order, without those that change nothing."""
    steps = [(name, transitions.step(found.facts.key, name)) for name in _passes(transitions)]
    return [Found(outcome.facts, (*found.passes, name)) for name, outcome in steps if outcome.changed]


def _tell(on_progress: OnProgress | None, done: float, best: Found) -> None:
    if on_progress is not None:
        on_progress(done, f"{best.facts.operations} operations after {len(best.passes)} passes")


def _operations(found: Found) -> int:
    return found.facts.operations
