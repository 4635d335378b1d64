"""The smallest policy over classes of matches: a weight for each number that is seen of a kind.

    score of a kind    weights . its numbers
    of terminate       weights . (mean over kinds, cost) + bias

What a state is as a whole would move the scores of all its kinds alike, so it enters where it makes a difference: in
the score of terminate.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rlflow.agents.pointing import PointerDistribution
from rlflow.world_model.match_level.observation import TokenLayout


class LinearPointer(nn.Module):
    """A linear policy over flat observations of `TokenLayout`, all weights 0 at first."""

    def __init__(self, embedding: int) -> None:
        super().__init__()
        self.layout = TokenLayout(1, embedding)
        self.kind = nn.Parameter(torch.zeros(self.layout.width))
        self.context = nn.Parameter(torch.zeros(self.layout.width + 1))
        self.bias = nn.Parameter(torch.zeros(1))

    def distribution(self, observation: Tensor) -> PointerDistribution:
        """The policy at observations (B, size) of any number of classes."""
        view = self.layout.split(observation)
        number = view.present.sum(dim=1, keepdim=True).clamp_min(1)
        context = torch.cat([view.classes.sum(dim=1) / number, view.cost], dim=1)  # empty places are 0
        terminate = context @ self.context[:, None] + self.bias
        return PointerDistribution.of(view.classes @ self.kind, terminate, view.present)
