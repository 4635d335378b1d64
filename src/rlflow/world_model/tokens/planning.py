"""Imagine in M where rewrites lead to, by chains of rewrites.

    best = best_returns(knowledge, memory, states, kind, length, config, generator)           (B,) in percent

A chain begins with the rewrite in question. It goes on next to its last step, by rewrites that are drawn as V thinks
that an expert chooses, as chains do on a real graph. It is worth the most that it has saved after any of its steps,
since it may be ended there:

    -1.0, +0.2, +3.0, -0.5         is worth 2.2
"""

from __future__ import annotations

import torch
from torch import Tensor

from rlflow.nn.masking import sample_categorical
from rlflow.world_model.tokens.config import TokenDreamConfig
from rlflow.world_model.tokens.imagination import KindStates, imagine
from rlflow.world_model.tokens.knowledge import Knowledge
from rlflow.world_model.tokens.token_memory import TokenMemory

_NEAR = 1  # edges from the last rewrite to the next one of a chain


@torch.no_grad()
def best_returns(
    knowledge: Knowledge,
    memory: TokenMemory,
    states: KindStates,
    kind: Tensor,
    length: int,
    config: TokenDreamConfig,
    generator: torch.Generator,
) -> Tensor:
    """The worth (B,) of one imagined chain from each of B states, in percent of the start.

    kind (B,): of the first rewrite, of which there must be a match; length: rewrites of a chain at most.
    """
    states, earned = imagine(knowledge, memory, states, kind, config, generator)
    best, going = earned.clone(), torch.arange(len(kind))
    for _ in range(length - 1):
        near = (states.count > 0) & (states.near <= _NEAR)
        goes_on = near.any(dim=1)
        if not goes_on.any():
            break
        going, states, near = going[goes_on], states.rows(torch.nonzero(goes_on).squeeze(-1)), near[goes_on]
        logits = knowledge.reading.taken[states.token].masked_fill(~near, -torch.inf)
        following = sample_categorical(logits, generator)
        states, reward = imagine(knowledge, memory, states, following, config, generator)
        earned[going] += reward
        best[going] = torch.maximum(best[going], earned[going])
    return best
