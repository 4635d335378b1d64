"""Sequences of passes that were chosen for many programs together, and run once on any other, without a search.

    core = learned(transitions, starts, candidates, max_passes=45)     on programs to train on
    found = run(transitions, transitions.start("model.onnx"), core)    on any other
    found = run(transitions, start, shipped("onnx"))                   by what was learned on the families of the study

Every sequence begins at the best program so far, and what it makes of it is kept unless more operations are left. So a
pass that does harm to a program, which others need, costs that program nothing but the run.

They are chosen by greedy cover (Liang et al. 2023, *Learning Compiler Pass Orders using Coreset and Normalized Value
Prediction*, who choose one sequence for a program where these are run one after another).
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from pathlib import Path

from rlflow.errors import InputError
from rlflow.passes.backend import Facts
from rlflow.passes.search import Found
from rlflow.passes.transitions import Transitions

Passes = tuple[str, ...]
CoreSet = tuple[Passes, ...]
"""Sequences of passes, in the order in which they are run."""

_FOLDER = Path(__file__).with_name("core_sets")
_LEARNED_ON = {"onnx": "onnx", "onnx-contrib": "onnx", "xla": "xla", "xla-onnx": "xla"}
"""By backend the one whose core set it has: another with the same passes."""


def shipped(backend: str) -> CoreSet:
    """Return the core set that was learned for a backend. `InputError` if there is none."""
    if backend not in _LEARNED_ON:
        raise InputError(
            f"no core set was learned for the passes of {backend!r}: choose one of {', '.join(_LEARNED_ON)}"
        )
    return tuple(map(tuple, json.loads((_FOLDER / f"{_LEARNED_ON[backend]}.json").read_text())))


def run(transitions: Transitions, start: Facts, core: CoreSet) -> Found:
    """The program after the sequences of a core set, each from the best program so far."""
    found = Found(start)
    for names in core:
        found = _best_on_the_way(transitions, found, names)
    return found


def learned(
    transitions: Transitions, starts: Sequence[Facts], candidates: Sequence[Passes], *, max_passes: int
) -> CoreSet:
    """Choose sequences by what they gain on these programs, as long as they fit into `max_passes` passes in all.

    First come those that gain together; then a second way, of those that were not chosen, for programs on which the
    first does not work; then the first again, as in the fixpoint of a compiler; and then passes that gain nothing here,
    but might elsewhere.
    """
    first = _cover(transitions, starts, candidates)
    second = _cover(transitions, starts, [names for names in candidates if names not in first])
    core = CoreSet()
    for names in (*first, *second, *first, *_others(transitions, starts, candidates, {*chain(*first, *second)})):
        if sum(map(len, core)) + len(names) <= max_passes:
            core = (*core, names)
    return core


def _others(
    transitions: Transitions, starts: Sequence[Facts], candidates: Sequence[Passes], chosen: AbstractSet[str]
) -> CoreSet:
    """The single passes that were not chosen but change some of these programs, by how many they change."""
    changed = {
        names: sum(transitions.step(start.key, names[0]).changed for start in starts)
        for names in candidates
        if len(names) == 1 and names[0] not in chosen
    }
    return tuple(sorted(filter(changed.__getitem__, changed), key=changed.__getitem__, reverse=True))


def _cover(transitions: Transitions, starts: Sequence[Facts], candidates: Sequence[Passes]) -> CoreSet:
    """Choose again and again what gains most for each of its passes, as long as something does.

    Gains mostly shrink while the cover grows, so that only what could be the best is tried again (Minoux 1978); when
    nothing is left, all are tried anew.
    """
    best, cover = [Found(start) for start in starts], CoreSet()
    grown = True
    while grown:
        grown, heap = False, [(-math.inf, number) for number in range(len(candidates))]
        while heap:
            _, number = heapq.heappop(heap)
            names = candidates[number]
            after = [_best_on_the_way(transitions, found, names) for found in best]
            gain = _gain(best, after) / len(names)
            if gain > 0.0:
                heapq.heappush(heap, (-gain, number))
                if heap[0][1] == number:
                    best, cover, grown = after, (*cover, names), True
    return cover


def _best_on_the_way(transitions: Transitions, found: Found, names: Passes) -> Found:
    """The last of the programs with the fewest operations, among those before and after each pass."""
    best, facts, taken = found, found.facts, found.passes
    for name in names:
        outcome = transitions.step(facts.key, name)
        if outcome.changed:
            facts, taken = outcome.facts, (*taken, name)
            if facts.operations <= best.facts.operations:
                best = Found(facts, taken)
    return Found(best.facts, best.passes, found.tried + len(names))


def _gain(before: Sequence[Found], after: Sequence[Found]) -> float:
    """The mean over programs, of the logarithm of one more than the operations, since there may be none."""
    gains = [
        math.log1p(b.facts.operations) - math.log1p(a.facts.operations) for b, a in zip(before, after, strict=True)
    ]
    return sum(gains) / len(gains)
