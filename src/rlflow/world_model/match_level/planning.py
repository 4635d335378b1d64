"""Imagine in M where rewrites lead to, by chains of rewrites.

    best = best_returns(precomputed, memory, states, kind, PlanConfig(), least, generator)      (B,)

A chain begins with the rewrites of the class in question. It goes on next to any of its steps so far, by classes that
are drawn as V thinks that an expert chooses, as chains do on a real graph. It is worth the most that it has saved after
any of its steps, since it may be ended there:

    -1.0, +0.2, +3.0, -0.5         is worth 2.2
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

    length: classes that an imagined chain rewrites, at most; chains: imagined from each, of which the mean counts;
    dream: in what dream.
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

    class (B,): the first that is rewritten, of which there must be a match. least: the logit of V below which no
    rewrite is chosen to go on with.
    """
    going, near = torch.arange(len(match_class)), states.near
    after, earned = imagine(precomputed, memory, states, match_class, config.dream, generator)
    best = earned.clone()
    for _ in range(config.length - 1):
        near = torch.minimum(near, after.near)
        logits = precomputed.reading.taken[after.token]
        open_ = (after.count > 0) & (near <= _NEAR) & (logits >= least)
        goes_on = torch.nonzero(open_.any(dim=1)).squeeze(-1)
        if not len(goes_on):
            break
        going, near, states = going[goes_on], near[goes_on], after.rows(goes_on)
        match_class = sample_categorical(logits[goes_on].masked_fill(~open_[goes_on], -torch.inf), generator)
        after, reward = imagine(precomputed, memory, states, match_class, config.dream, generator)
        earned[going] += reward
        best[going] = torch.maximum(best[going], earned[going])
    return best
