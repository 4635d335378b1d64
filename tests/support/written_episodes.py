"""A world of four tokens with a law that is known, its episodes, and a dream that knows the law."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from rlflow.representation.token_rollouts import TokenEpisode, TokenState, TokenStep
from rlflow.world_model.match_level.precomputed import PrecomputedModel
from support.token_dreams import Entry, Set, precomputed

A, B, C, D = range(4)
LAW: Mapping[int, tuple[int, ...]] = {A: (B,), B: (C, D), C: (), D: ()}
"""What a rewrite of each token bears. It ends nothing else."""
SAVED = (3.0, -1.0, 0.5, 2.0)
"""What it saves, in units."""


def written_episode(
    start: Sequence[int], tokens: Sequence[int], unit_percent: float = 1.0, most: int = 99
) -> TokenEpisode:
    """The episode from one match of each token of `start` on, by rewrites of some tokens, of each at `most` so many."""
    counts = np.bincount(start, minlength=len(LAW))
    states, steps, cost = [_state(counts, 100.0, unit_percent)], [], 100.0
    for token in tokens:
        before = states[-1]
        taken = min(most, int(counts[token]))
        counts = counts + taken * (
            np.bincount(LAW[token], minlength=len(LAW)) - np.eye(len(LAW), dtype=np.int64)[token]
        )
        cost -= taken * SAVED[token] * unit_percent
        states.append(_state(counts, cost, unit_percent))
        chosen = before.token.tolist().index(token)
        born = [[states[-1].token.tolist().index(one), taken] for one in LAW[token]]
        steps.append(
            TokenStep(
                chosen=chosen,
                taken=taken,
                reward=taken * SAVED[token] * unit_percent,
                distance=before.distance[chosen],
                gone=np.zeros(len(before.token), np.int64),
                turned=np.zeros((0, 3), np.int64),
                born=np.array(born, np.int64).reshape(-1, 2),
            )
        )
    return TokenEpisode(0, unit_percent, tuple(states), tuple(steps), terminated=False)


def _state(counts: np.ndarray, cost: float, unit_percent: float) -> TokenState:
    """All kinds are 2 edges apart."""
    token = np.flatnonzero(counts)
    distance = np.where(np.eye(len(token), dtype=bool), 0, 2).astype(np.int8)
    saving = (np.array(SAVED)[token] * unit_percent).astype(np.float32)
    return TokenState(token, counts[token], counts[token], distance, saving, cost, f"{cost:.6f}")


def known_law(
    law: Mapping[int, tuple[int, ...]] = LAW, saved: Sequence[float] = SAVED, sigma: float = 0.0
) -> PrecomputedModel:
    """What a model knows that knows this law."""
    sets = {token: [Set([Entry(one) for one in born], apart=2)] for token, born in law.items()}
    reading: Tensor = torch.asinh(torch.tensor(saved, dtype=torch.float64)).float()
    return precomputed(sets, reading.tolist(), [sigma] * len(saved))
