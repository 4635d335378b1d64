"""M over match tokens: which matches the rewrites of a class end, and which they make possible.

A match is ended by rewrites nearby, mostly those that share a node with it: `survival` looks at both tokens and at the
distance between them. What becomes possible is a mixture over the birth sets that were seen (`match_deltas.py`), one
component each: the closer the token of the rewrite is to the one that had the set, in a space that is learned, the more
likely the set, and more so, by a factor that is learned, if it is the same token. So what is dreamed of is always
something that has happened, if not here.

    p(set | token) ~ seen(set) x exp(-|W token - W parent(set)|^2 + s [token = parent(set)])

The temperature divides the logarithms of these weights; at 0 the likeliest set is taken.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rlflow.nn.mlp import mlp
from rlflow.representation.token_rollouts import FAR_AWAY

FEW, MOST_EACH = 2, 2
"""The largest number of matches, gone or left, with an outcome of its own; and the most that end with each rewrite."""

ALL_BUT = FEW + MOST_EACH + 1
OUTCOMES = ALL_BUT + FEW + 1
"""Outcomes of a class: 0 to `FEW` matches are gone, or one or two with each rewrite, or all but 0 to `FEW`."""


def outcome_of(gone: Tensor, count: Tensor, taken: Tensor) -> Tensor:
    """Return the outcomes (N,) int64 of classes of count (N,) of which so many are gone (N,) after `taken` rewrites.

    A small number has an outcome of its own; larger ones share one, by how many went with each rewrite.
    """
    left = count - gone
    each = FEW + (gone / taken).round().long().clamp(1, MOST_EACH)
    many = torch.where(gone <= FEW, gone, each)
    return torch.where(left <= FEW, torch.where((gone <= left) & (left > 0), many, ALL_BUT + left), many)


def left_after(outcome: Tensor, count: Tensor, taken: Tensor) -> Tensor:
    """Return how many (N,) of count (N,) matches an outcome (N,) leaves after `taken` (N,) rewrites."""
    gone = torch.where(outcome <= FEW, outcome, (outcome - FEW) * taken)
    return torch.where(outcome < ALL_BUT, count - gone, torch.minimum(outcome - ALL_BUT, count)).clamp_min(0)


class TokenMemory(nn.Module):
    """Two heads on embeddings (W) of tokens."""

    def __init__(self, embedding: int, metric_width: int, survival_width: int) -> None:
        super().__init__()
        self.metric = nn.Linear(embedding, metric_width, bias=False)
        self.same = nn.Parameter(torch.ones(()))
        self.chosen = nn.Linear(embedding, survival_width)
        self.other = nn.Linear(embedding, survival_width, bias=False)
        self.distance = nn.Embedding(FAR_AWAY + 1, survival_width)
        self.count = nn.Linear(1, survival_width, bias=False)
        self.gone = mlp([survival_width, survival_width, OUTCOMES])

    def birth_logits(self, chosen: Tensor, parent: Tensor, seen: Tensor, same: Tensor) -> Tensor:
        """Logarithms of the weights (M, S) of S sets after rewrites with embeddings `chosen` (M, W).

        parent (S, W): embeddings of the tokens that had the sets; seen (S,): how often; same (M, S) bool: it is the
        token of the rewrite.
        """
        return seen.log() - torch.cdist(self.metric(chosen), self.metric(parent)).square() + self.same * same

    def gone_logits(self, chosen: Tensor, other: Tensor, distance: Tensor, count: Tensor) -> Tensor:
        """Logits (..., OUTCOMES) of how many matches are ended of a class of `count` (...) matches.

        chosen, other (..., W): embeddings of the class that is rewritten, and of this one; distance (...) int64 between
        them.
        """
        return self.gone_logits_of(self.chosen(chosen), self.other(other), distance, count)

    def gone_logits_of(self, chosen: Tensor, other: Tensor, distance: Tensor, count: Tensor) -> Tensor:
        """The same of embeddings that `self.chosen` and `self.other` have mapped already, (..., H)."""
        how_many = self.count(torch.log1p(count.float())[..., None])
        return self.gone(nn.functional.silu(chosen + other + self.distance(distance) + how_many))  # type: ignore[no-any-return]
