"""Savings of a quantity beside the price by rewrites of each token, read off V's embeddings (`world_model.readout`).

A token that was rewritten in the rollouts has a feature of its own beside, so that what was seen of it counts most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rlflow.representation.token_rollouts import TokenEpisode
from rlflow.step_reward import Quantity
from rlflow.world_model.match_level.precomputed import PrecomputedModel
from rlflow.world_model.readout import Readout


@dataclass(frozen=True, eq=False)
class TokenReadout:
    """The saving (T,) by one rewrite of each token, in percent of the start; `readout` has the range of a step's."""

    saving: Tensor
    readout: Readout

    @classmethod
    def of(
        cls, precomputed: PrecomputedModel, episodes: Sequence[TokenEpisode], number: Tensor, quantity: Quantity
    ) -> TokenReadout:
        """Fit the steps of episodes, of which `number` (N,) tells the dream's tokens. `InputError` as `Readout.fit`."""
        token, taken, saved = zip(
            *(
                (state.token[step.chosen], step.taken, getattr(step, f"{quantity}_saved"))
                for episode in episodes
                for state, step in zip(episode.states, episode.steps, strict=False)
            ),
            strict=True,
        )
        place = number[torch.tensor(token)]
        met, own = place.unique(return_inverse=True)
        known = torch.stack([torch.sinh(precomputed.saving), torch.ones_like(precomputed.saving)], dim=1)
        features = torch.cat([precomputed.reading.embedding, known, known.new_zeros(len(known), len(met))], dim=1)
        features[place, own - len(met)] = 1.0
        steps = torch.tensor(taken)[:, None] * features[place]
        readout = Readout.fit(steps, torch.tensor(saved), quantity)
        return cls(features @ readout.weights, readout)

    def __call__(self, token: Tensor, times: Tensor) -> Tensor:
        """The savings (B,) by so many rewrites (B,) of tokens (B,)."""
        return self.readout.within(times * self.saving[token])
