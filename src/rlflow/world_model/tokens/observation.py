"""What a policy sees of kinds of matches, the same in a dream and on a real graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from rlflow.representation.token_distances import FAR_AWAY
from rlflow.world_model.tokens.imagination import KindStates

_EXTRAS = 3  # saving, count, nearness
_SAVING_SCALE = 0.25  # asinh of units: a thousand units are 1.9


class TokenView(NamedTuple):
    """An observation taken apart: kinds (..., K, W + 3), present (..., K) bool, cost (..., 1)."""

    kinds: Tensor
    present: Tensor
    cost: Tensor


@dataclass(frozen=True)
class TokenLayout:
    """A flat observation of K kinds: of each the embedding (W), the saving that V reads, the count, the nearness to
    the last rewrite; then the cost, as a loss or a gain in units since the episode's start. All float32.
    """

    max_kinds: int
    embedding: int

    @property
    def width(self) -> int:
        """Numbers for each kind."""
        return self.embedding + _EXTRAS

    @property
    def size(self) -> int:
        """Length of an observation."""
        return self.max_kinds * self.width + 1

    def flatten(self, states: KindStates, embedding: Tensor, saving: Tensor) -> Tensor:
        """States (B, K), with embedding (B, K, W) and saving (B, K) of their tokens -> (B, size)."""
        nearness = 1.0 - states.near.float() / FAR_AWAY
        extras = torch.stack([_SAVING_SCALE * saving, torch.log1p(states.count.float()), nearness], dim=-1)
        present = (states.count > 0)[..., None]
        kinds = torch.where(present, torch.cat([embedding, extras], dim=-1), 0.0)
        gained = _SAVING_SCALE * torch.asinh((states.begun - states.cost) / states.unit)
        return torch.cat([kinds.flatten(1), gained[:, None]], dim=1)

    def split(self, observation: Tensor) -> TokenView:
        """Observation (..., size) -> its parts."""
        kinds = observation[..., :-1].unflatten(-1, (self.max_kinds, self.width))
        return TokenView(kinds, kinds[..., self.embedding + 1] > 0, observation[..., -1:])
