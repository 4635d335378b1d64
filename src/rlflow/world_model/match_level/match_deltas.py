"""The birth sets that rollouts have shown: which matches a rewrite made possible, and where they lie.

M draws what becomes possible from what has become possible before, after all matches of a class that looks alike were
rewritten (`token_memory.py`). A birth set lists the tokens of the matches that were born, and of those that were there
and looked different afterwards, each with what it looked like before.

The invariant: equal birth sets of one token are one, with the number of times that they were seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rlflow.representation.token_rollouts import TokenEpisode, TokenState, TokenStep

NONE = -1
"""No token: what fills up a set, and what a match that was born looked like before."""


@dataclass(frozen=True, eq=False)
class MatchDeltas:
    """S sets of at most P matches.

    parent (S,) int64: the token of the rewrites that had this outcome; taken (S,) int64: how many they were; seen (S,)
    float32: how often they had it. token (S, P) int64,
    `NONE` where a set is smaller; before (S, P) int64: the token of the same match before, `NONE` if it was born.
    count (S, P) int64, 0 where there is none; distance (S, P, P) int8 between the matches of a set.
    """

    parent: Tensor
    taken: Tensor
    seen: Tensor
    token: Tensor
    before: Tensor
    count: Tensor
    distance: Tensor

    def __len__(self) -> int:
        return len(self.parent)


@dataclass(frozen=True)
class StepSets:
    """The birth sets of M steps that left no match of their class.

    of_step (M,) int64: the number of each step's set; steps in the order of the episodes.
    """

    sets: MatchDeltas
    of_step: Tensor


def match_deltas(episodes: Sequence[TokenEpisode], largest: int) -> StepSets:
    """Gather the birth sets of all steps that left no match of their class.

    Of a larger set the first `largest` matches are kept, those born first.
    """
    places: dict[bytes, int] = {}
    rows: list[_Row] = []
    seen: list[int] = []
    of_step = []
    for episode in episodes:
        for before, step, after in zip(episode.states, episode.steps, episode.states[1:], strict=False):
            if not step.is_whole(before):
                continue
            row = _row(before, step, after, largest)
            place = places.setdefault(row.key, len(rows))
            if place == len(rows):
                rows.append(row)
                seen.append(0)
            seen[place] += 1
            of_step.append(place)
    return StepSets(_stacked(rows, seen), torch.tensor(of_step, dtype=torch.int64))


@dataclass(frozen=True)
class _Row:
    parent: int
    taken: int
    token: np.ndarray
    before: np.ndarray
    count: np.ndarray
    distance: np.ndarray

    @property
    def key(self) -> bytes:
        return b"".join(
            (f"{self.parent} {self.taken} ".encode(), *(a.tobytes() for a in (self.token, self.before, self.count)))
        )


def _row(before: TokenState, step: TokenStep, after: TokenState, largest: int) -> _Row:
    place = np.concatenate([step.born[:, 0], step.turned[:, 1]])
    looked_like = np.concatenate([np.full(len(step.born), NONE), before.token[step.turned[:, 0]]])
    count = np.concatenate([step.born[:, 1], step.turned[:, 2]])
    order = np.lexsort((looked_like, after.token[place], looked_like != NONE))[:largest]
    place = place[order]
    return _Row(
        parent=int(before.token[step.chosen]),
        taken=step.taken,
        token=after.token[place],
        before=looked_like[order],
        count=count[order],
        distance=after.distance[np.ix_(place, place)],
    )


def _stacked(rows: Sequence[_Row], seen: Sequence[int]) -> MatchDeltas:
    size = max((len(row.token) for row in rows), default=0)
    token, before = (np.full((len(rows), size), NONE, dtype=np.int64) for _ in range(2))
    count = np.zeros((len(rows), size), dtype=np.int64)
    distance = np.zeros((len(rows), size, size), dtype=np.int8)
    for number, row in enumerate(rows):
        filled = slice(0, len(row.token))
        token[number, filled], before[number, filled], count[number, filled] = row.token, row.before, row.count
        distance[number, filled, filled] = row.distance
    return MatchDeltas(
        parent=torch.tensor([row.parent for row in rows], dtype=torch.int64),
        taken=torch.tensor([row.taken for row in rows], dtype=torch.int64),
        seen=torch.tensor(seen, dtype=torch.float32),
        token=torch.from_numpy(token),
        before=torch.from_numpy(before),
        count=torch.from_numpy(count),
        distance=torch.from_numpy(distance),
    )
