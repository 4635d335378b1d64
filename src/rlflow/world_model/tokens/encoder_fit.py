"""Fit V: what a rewrite saves, and what it makes possible, must be readable from its token.

Savings are labels of every kind of match in every state that was visited, taken or not. Kinds that are met often count
for more, by the square root of how often. What became possible is known of the rewrites that were taken: a head on the
embedding must tell the operators in the matches that were born. It is thrown away afterwards.

The error of a saving is learned beside it, from the same tokens, but does not weigh them: with a likelihood that weighs
by sigma, tokens that are hard to predict would hardly be learned (Seitzer et al. 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rlflow.nn.mlp import mlp
from rlflow.representation.edit_graph import ADDED
from rlflow.representation.match_token import MatchToken
from rlflow.representation.token_rollouts import TokenEpisode
from rlflow.world_model.optimisation import descend
from rlflow.world_model.tokens.config import TokenModelConfig
from rlflow.world_model.tokens.token_batch import TokenTable
from rlflow.world_model.tokens.token_encoder import TokenEncoder, TokenReading

_HUBER = 0.1  # asinh of a unit: smaller errors count squared, larger ones as they are


@dataclass(frozen=True)
class TokenLabels:
    """What episodes tell of M tokens: place (M,) int64; saving (M,), asinh of units; weight (M,); births (M, 2V)."""

    place: np.ndarray
    saving: Tensor
    weight: Tensor
    births: Tensor
    has_births: Tensor


def token_labels(episodes: Sequence[TokenEpisode], operators: np.ndarray) -> TokenLabels:
    """Labels of the tokens in these episodes; operators (T, 2V): what each removes and adds (`edit_operators`)."""
    seen = np.zeros(len(operators), dtype=np.int64)
    saving = np.zeros(len(operators))
    taken, births = np.zeros(len(operators)), np.zeros(operators.shape)
    for episode in episodes:
        for state in episode.states:
            np.add.at(seen, state.token, state.count)
            saving[state.token] = state.saving / episode.unit_percent
        for before, step, after in zip(episode.states, episode.steps, episode.states[1:], strict=False):
            token = before.token[step.chosen]
            taken[token] += 1
            births[token] += np.log1p(_born_operators(step.born, after.token, operators))
    place = np.flatnonzero(seen)
    mean_births = births[place] / np.maximum(taken[place], 1)[:, None]
    return TokenLabels(
        place,
        torch.from_numpy(np.arcsinh(saving[place]).astype(np.float32)),
        torch.from_numpy(np.sqrt(seen[place]).astype(np.float32)),
        torch.from_numpy(mean_births.astype(np.float32)),
        torch.from_numpy(taken[place] > 0),
    )


def _born_operators(born: np.ndarray, token: np.ndarray, operators: np.ndarray) -> np.ndarray:
    return (operators[token[born[:, 0]]] * born[:, 1:]).sum(axis=0)


def edit_operators(tokens: Sequence[MatchToken], vocabulary_size: int) -> np.ndarray:
    """(T, 2V) int64: how many nodes of each operator each token removes, then how many it adds."""
    counts = np.zeros((len(tokens), 2 * vocabulary_size), dtype=np.int64)
    for row, token in zip(counts, tokens, strict=True):
        changed = token.role <= ADDED
        np.add.at(row, token.op[changed] + vocabulary_size * token.role[changed], 1)
    return counts


class TokenEncoderFit:
    """V's share of the fit: passes over the distinct tokens of the training episodes."""

    def __init__(self, encoder: TokenEncoder, table: TokenTable, labels: TokenLabels, config: TokenModelConfig) -> None:
        self.encoder, self.table, self.labels, self.config = encoder, table, labels, config
        self.births = mlp([config.encoder_width, config.encoder_width, labels.births.shape[1]])
        self.parameters = [*encoder.parameters(), *self.births.parameters()]
        self.optimiser = torch.optim.Adam(self.parameters)

    def run_epoch(self, epoch: int, generator: torch.Generator) -> dict[str, float]:
        """Run one pass; returns the mean losses."""
        config = self.config
        self.encoder.train()
        batches = torch.randperm(len(self.labels.place), generator=generator).split(config.encoder_batch)
        totals = {"saving": 0.0, "sigma": 0.0, "births": 0.0}
        for number, rows in enumerate(batches):
            losses = self._losses(rows)
            loss = losses["saving"] + losses["sigma"] + config.births_weight * losses["births"]
            progress = (epoch + number / len(batches)) / config.encoder_epochs
            descend(
                loss, self.optimiser, self.parameters, config.encoder_learning_rate, progress, config.max_gradient_norm
            )
            for name, value in losses.items():
                totals[name] += value.item() / len(batches)
        return {f"encoder/{name}": value for name, value in totals.items()}

    def _losses(self, rows: Tensor) -> dict[str, Tensor]:
        labels = self.labels
        reading: TokenReading = self.encoder(self.table.batch(labels.place[rows.numpy()]))
        saving, weight = labels.saving[rows], labels.weight[rows] / labels.weight[rows].sum()
        huber = functional.smooth_l1_loss(reading.saving, saving, beta=_HUBER, reduction="none")
        residual = (reading.saving - saving).detach()
        likelihood = 0.5 * (residual / reading.sigma) ** 2 + reading.sigma.log()

        taken = labels.has_births[rows]
        told = self.births(reading.embedding[taken])
        births = functional.smooth_l1_loss(told, labels.births[rows][taken]) if taken.any() else torch.zeros(())
        return {"saving": (weight * huber).sum(), "sigma": (weight * likelihood).sum(), "births": births}
