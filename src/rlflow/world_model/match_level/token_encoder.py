"""V over match tokens: a graph neural network that reads an edit, and tells what it saves.

The prices of the nodes that go are known, those of the nodes that come are estimated from their work. What is left to
learn are corrections: how much of a node's price an edit really saves or costs where operators are fused. They multiply
prices, so that what was learned on a small model holds in a large one.

    saving ~ sum over removed of price x exp(correction) - sum over added of price x exp(correction)

Savings are in the unit of prices (`representation/price_profile.py`) and span six decades with both signs; errors are
measured on the scale of asinh, which is linear near 0 and logarithmic beyond 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rlflow.nn.message_passing import MessagePassing, scatter_sum
from rlflow.nn.mlp import mlp
from rlflow.representation.edit_graph import ADDED, FAR
from rlflow.representation.token_batch import TokenBatch, TokenTable

LARGEST_CORRECTION = 6.0  # e^6: a price may be wrong by a factor of 400
LARGEST_SAVING = 14.0  # asinh of 600,000 units


class TokenReading(NamedTuple):
    """V's reading of T tokens.

    embedding (T, W). saving, sigma (T,): the asinh of what the rewrite saves, in units of prices, and the standard
    deviation of its error. taken (T,): the logit of the probability that an expert takes it, now or later; gain (T,):
    the logarithm of 1 + what it leads to then, in units of prices.
    """

    embedding: Tensor
    saving: Tensor
    sigma: Tensor
    taken: Tensor
    gain: Tensor

    @classmethod
    def empty(cls, width: int) -> TokenReading:
        """The reading of no token."""
        none = torch.zeros(0)
        return cls(torch.zeros(0, width), none, none, none, none)

    def rows(self, number: Tensor) -> TokenReading:
        """The readings of tokens by their places (N,)."""
        return TokenReading(*(column[number] for column in self))

    def followed_by(self, other: TokenReading) -> TokenReading:
        """Both readings, end to end."""
        return TokenReading(*(torch.cat(columns) for columns in zip(self, other, strict=True)))


class TokenEncoder(nn.Module):
    """Message passing over both sides of every token, then a sum over the nodes of each side.

    `agents/match_level/onnx_encoder.py` writes the same steps as an ONNX model.

    `sigma_factor`, by which every sigma is multiplied, is 1 until the fit is over (`calibration.py`).
    """

    sigma_factor: Tensor

    def __init__(self, vocabulary_size: int, num_features: int, width: int, layers: int) -> None:
        super().__init__()
        self.operator = nn.Embedding(vocabulary_size, width)
        self.role = nn.Embedding(FAR + 1, width)
        self.features = nn.Linear(num_features, width)
        self.blocks = nn.ModuleList([MessagePassing(width) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.correction = mlp([2 * width, width, 1])
        self.readout = mlp([2 * width, width, width])
        self.saving = mlp([width + 1, width, 2])
        self.worth = mlp([width + 1, width, 2])
        self.register_buffer("sigma_factor", torch.ones(()))

    def forward(self, arrays: TokenBatch[np.ndarray]) -> TokenReading:
        """Read T tokens."""
        batch = arrays.mapped(torch.from_numpy)
        nodes = self.operator(batch.op) + self.role(batch.role) + self.features(batch.features)
        into, out_of = torch.stack([batch.receiver, batch.sender]), torch.stack([batch.sender, batch.receiver])
        for block in self.blocks:
            nodes = block(nodes, into, out_of)
        nodes = self.norm(nodes)

        sides = torch.cat([nodes * ~batch.is_after[:, None], nodes * batch.is_after[:, None]], dim=-1)
        embedding = self.readout(scatter_sum(sides, batch.token, batch.num_tokens))
        known = torch.asinh(self._known_saving(batch, nodes))
        told = torch.cat([embedding, known[:, None]], dim=-1)
        correction, log_sigma = self.saving(told).unbind(dim=-1)
        saving = (known + correction).clamp(-LARGEST_SAVING, LARGEST_SAVING)
        sigma = self.sigma_factor * log_sigma.clamp(-5.0, 2.0).exp()
        taken, gain = self.worth(told).unbind(dim=-1)
        return TokenReading(embedding, saving, sigma, taken, nn.functional.softplus(gain))

    def _known_saving(self, batch: TokenBatch[Tensor], nodes: Tensor) -> Tensor:
        """The saving that the prices of removed and added nodes tell, corrected node by node; (T,) in units."""
        has_twin = batch.twin >= 0
        before = torch.where(has_twin[:, None], nodes[batch.twin.clamp_min(0)], 0.0)
        correction = self.correction(torch.cat([nodes, nodes - before], dim=-1)).squeeze(-1)
        price = batch.price * correction.clamp(-LARGEST_CORRECTION, LARGEST_CORRECTION).exp()
        signed = torch.where(batch.is_after, -price, price) * (batch.role <= ADDED)
        return scatter_sum(signed[:, None], batch.token, batch.num_tokens).squeeze(-1)

    @torch.no_grad()
    def read(self, table: TokenTable, batch_size: int = 512) -> TokenReading:
        """Read all tokens of a table, without gradient."""
        places = np.arange(len(table))
        parts = [self(table.batch(places[i : i + batch_size])) for i in range(0, len(table), batch_size)]
        return TokenReading(*(torch.cat(columns) for columns in zip(*parts, strict=True)))
