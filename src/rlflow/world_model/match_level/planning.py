"""Imagine in M where rewrites lead to, by chains of rewrites.

    best = best_returns(precomputed, memory, states, kind, PlanConfig(), least, generator)      (B,)

A chain begins with the rewrite in question. It goes on next to any of its steps so far, by rewrites that are drawn as V
thinks that an expert chooses, as chains do on a real graph. It is worth the most that it has saved after any of its
steps, since it may be ended there:

    -1.0, +0.2, +3.0, -0.5         is worth 2.2

Matches that look alike are one kind, in all layers of a model. Once the chain has taken one of a kind, the others of it
lie elsewhere, and are no continuation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from rlflow.errors import InputError
from rlflow.nn.masking import sample_categorical
from rlflow.world_model.match_level.imagination import ClassStates, imagine
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig
from rlflow.world_model.match_level.precomputed import PrecomputedModel
from rlflow.world_model.match_level.token_memory import TokenMemory

_NEAR = 1  # edges from a step of a chain to the next one


@dataclass(frozen=True)
class PlanConfig:
    """Settings of a plan.

    length: rewrites of an imagined chain at most; chains: imagined from each rewrite, of which the mean counts; dream:
    in what dream.
    """

    length: int = 8
    chains: int = 4
    dream: MatchLevelDreamConfig = field(default_factory=MatchLevelDreamConfig)

    def __post_init__(self) -> None:
        for name in ("length", "chains"):
            if getattr(self, name) < 1:
                raise InputError(f"planned: {name} is a number of at least 1, not {getattr(self, name)}")


@torch.no_grad()
def best_returns(
    precomputed: PrecomputedModel,
    memory: TokenMemory,
    states: ClassStates,
    match_class: Tensor,
    config: PlanConfig,
    least: float,
    generator: torch.Generator,
) -> Tensor:
    """The worth (B,) of one imagined chain from each of B states, as `states.unit` has it.

    class (B,): of the first rewrite, of which there must be a match. least: the logit of V below which no rewrite is
    chosen to go on with.
    """
    going, near, closed = torch.arange(len(match_class)), states.near, torch.zeros_like(states.token, dtype=torch.bool)
    one = torch.ones_like(match_class)
    after, earned = imagine(precomputed, memory, states, match_class, one, config.dream, generator)
    best = earned.clone()
    for _ in range(config.length - 1):
        near, closed = torch.minimum(near, after.near), _closed(states, after, match_class, closed)
        logits = precomputed.reading.taken[after.token]
        open_ = (after.count > 0) & (near <= _NEAR) & ~closed & (logits >= least)
        goes_on = torch.nonzero(open_.any(dim=1)).squeeze(-1)
        if not len(goes_on):
            break
        going, near, closed, states = going[goes_on], near[goes_on], closed[goes_on], after.rows(goes_on)
        match_class = sample_categorical(logits[goes_on].masked_fill(~open_[goes_on], -torch.inf), generator)
        after, reward = imagine(
            precomputed, memory, states, match_class, torch.ones_like(match_class), config.dream, generator
        )
        earned[going] += reward
        best[going] = torch.maximum(best[going], earned[going])
    return best


def _closed(before: ClassStates, after: ClassStates, match_class: Tensor, closed: Tensor) -> Tensor:
    """The places (B, K) of classes of which the chain has taken a match; not those that others have come to since."""
    batch = torch.arange(len(match_class))
    taken = closed.clone()
    taken[batch, match_class] = before.count[batch, match_class] > 1  # a single match leaves its place to what is born
    return taken & (after.token == before.token)
