"""The states of rollouts in which a dream may begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rlflow.representation.token_rollouts import FAR_AWAY, TokenEpisode, TokenState, nearness_after
from rlflow.world_model.match_level.imagination import ClassStates


@dataclass(frozen=True, eq=False)
class TokenStarts:
    """S states; initial (S,) bool: an episode of the rollouts began there."""

    states: ClassStates
    initial: Tensor


def visited_states(episodes: Sequence[TokenEpisode], max_kinds: int) -> TokenStarts:
    """Every state in which a rewrite was taken, with at most `max_kinds` classes: those nearest to the last rewrite."""
    rows, initial = [], []
    for episode in episodes:
        for number, (state, near) in enumerate(_with_nearness(episode)):
            rows.append(_table(state, near, episode.unit_percent, max_kinds))
            initial.append(number == 0)
    return TokenStarts(ClassStates(*(torch.stack(column) for column in zip(*rows, strict=True))), torch.tensor(initial))


def _with_nearness(episode: TokenEpisode) -> Iterator[tuple[TokenState, np.ndarray]]:
    near = np.full(len(episode.states[0].token), FAR_AWAY, dtype=np.int8)
    for state, step, after in zip(episode.states, episode.steps, episode.states[1:], strict=False):
        yield state, near
        near = nearness_after(state.token, step, after.token)


def _table(state: TokenState, near: np.ndarray, unit_percent: float, size: int) -> tuple[Tensor, ...]:
    """The columns of `ClassStates` for one state."""
    kept = np.lexsort((-state.saving * state.apart, near))[:size]
    filled = len(kept)
    token, count = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    distance = np.full((size, size), FAR_AWAY, dtype=np.int8)
    last = np.full(size, FAR_AWAY, dtype=np.int8)
    token[:filled], count[:filled], last[:filled] = state.token[kept], state.count[kept], near[kept]
    distance[:filled, :filled] = state.distance[np.ix_(kept, kept)]
    cost = torch.tensor(state.cost, dtype=torch.float32)
    columns = (torch.from_numpy(array) for array in (token, count, distance, last))
    return (*columns, cost, cost, torch.tensor(unit_percent, dtype=torch.float32))
