"""The answers of V and M for every token of some rollouts, worked out once, so that a dream only looks them up.

A dream never holds anything but tokens of the states in which it may start and of the birth sets that were seen, from
which it draws what is born. So the networks are asked beforehand.

    precomputed = PrecomputedModel.of(memory, reading, sets, candidates).priced(token, saving).counted(token, apart)

Matches that are one token nearly always save the same, so what was priced once is taken for what it saves wherever its
token is met; so is the share of its matches that are apart. V is believed of the others alone.

The tokens of a state of which nobody knew before are added when it is met (`with_tokens`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from rlflow.world_model.match_level.match_deltas import NONE, MatchDeltas
from rlflow.world_model.match_level.token_encoder import TokenReading
from rlflow.world_model.match_level.token_memory import TokenMemory

_ROWS_AT_ONCE = 256  # tokens that are compared with all birth sets at once


@dataclass(frozen=True, eq=False)
class PrecomputedModel:
    """T tokens: what V reads; chosen, other (T, H): M's maps for survival; and the likeliest of S birth sets.

    saving, sigma (T,): the asinh of what a rewrite saves, in units of prices, and the standard deviation of its error,
    which is 0 where it was priced; apart (T,): the share of the matches that share no node, 1 where none was met.
    likeliest (T, C) int64 into `sets`, and birth_logits (T, C), the logarithms of their weights.
    """

    reading: TokenReading
    saving: Tensor
    sigma: Tensor
    apart: Tensor
    chosen: Tensor
    other: Tensor
    sets: MatchDeltas
    likeliest: Tensor
    birth_logits: Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, memory: TokenMemory, reading: TokenReading, sets: MatchDeltas, candidates: int) -> PrecomputedModel:
        """Ask M about every token."""
        embedding = reading.embedding
        number, parent = torch.arange(len(embedding)), embedding[sets.parent]
        likeliest, logits = _likeliest_sets(memory, embedding, number, parent, sets, candidates)
        chosen, other = memory.chosen(embedding), memory.other(embedding)
        apart = torch.ones_like(reading.saving)
        return cls(reading, reading.saving, reading.sigma, apart, chosen, other, sets, likeliest, logits)

    @torch.no_grad()
    def with_tokens(self, memory: TokenMemory, reading: TokenReading, candidates: int) -> PrecomputedModel:
        """The same with more tokens, which had no birth set; their numbers follow those of the others."""
        embedding = reading.embedding
        number, parent = torch.full((len(embedding),), NONE), self.reading.embedding[self.sets.parent]
        likeliest, logits = _likeliest_sets(memory, embedding, number, parent, self.sets, candidates)
        return PrecomputedModel(
            self.reading.followed_by(reading),
            torch.cat([self.saving, reading.saving]),
            torch.cat([self.sigma, reading.sigma]),
            torch.cat([self.apart, torch.ones_like(reading.saving)]),
            torch.cat([self.chosen, memory.chosen(embedding)]),
            torch.cat([self.other, memory.other(embedding)]),
            self.sets,
            torch.cat([self.likeliest, likeliest]),
            torch.cat([self.birth_logits, logits]),
        )

    def priced(self, token: Tensor, saving: Tensor) -> PrecomputedModel:
        """The same where rewrites of tokens (N,) are known to save so much, (N,) in units."""
        known = self.saving.index_put((token,), torch.asinh(saving).to(self.saving))
        return replace(self, saving=known, sigma=self.sigma.index_fill(0, token, 0.0))

    def counted(self, token: Tensor, apart: Tensor) -> PrecomputedModel:
        """The same where such shares (N,) of the matches of tokens (N,) are known to be apart."""
        return replace(self, apart=self.apart.index_put((token,), apart.to(self.apart)))

    @cached_property
    def promised(self) -> Tensor:
        """(S,): the asinh of what can be saved by the matches that a set bears, in units for each rewrite."""
        sets = self.sets
        born = torch.where(sets.before == NONE, sets.count, 0)
        saving = torch.sinh(self.saving[sets.token.clamp_min(0)]).clamp_min(0.0)
        return torch.asinh((born * saving).sum(dim=1) / sets.taken)


def _likeliest_sets(
    memory: TokenMemory, embedding: Tensor, number: Tensor, parent: Tensor, sets: MatchDeltas, candidates: int
) -> tuple[Tensor, Tensor]:
    """The likeliest sets (N, C) of rewrites with embeddings (N, W), and the logarithms of their weights (N, C).

    number (N,): of their tokens, by which their own sets are known; parent (S, W): embeddings of the sets' parents.
    """
    likeliest, logits = [], []
    for rows in torch.arange(len(embedding)).split(_ROWS_AT_ONCE):
        same = number[rows, None] == sets.parent
        best = memory.birth_logits(embedding[rows], parent, sets.seen, same).topk(min(candidates, len(sets)), dim=1)
        likeliest.append(best.indices)
        logits.append(best.values)
    return torch.cat(likeliest), torch.cat(logits)
