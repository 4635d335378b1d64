"""Fit V: what a rewrite saves, and what it makes possible, must be readable from its token.

Savings are labels of every class of match in every state that was visited, taken or not. Kinds that are met often count
for more, by the square root of how often. Of the matches that an expert passed it is known whether he took them, and
what that led to. What became possible is known of the rewrites that were taken: a head on the embedding must tell the
operators in the matches that were born. It is thrown away afterwards.

The error of a saving is learned beside it, from the same tokens, but does not weigh them: with a likelihood that weighs
by sigma, tokens that are hard to predict would hardly be learned (Seitzer et al. 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rlflow.nn.mlp import mlp
from rlflow.representation.edit_graph import ADDED
from rlflow.representation.match_token import MatchToken
from rlflow.representation.token_batch import TokenTable
from rlflow.representation.token_rollouts import TokenEpisode
from rlflow.world_model.match_level.match_level_config import MatchLevelModelConfig
from rlflow.world_model.match_level.token_encoder import TokenEncoder, TokenReading
from rlflow.world_model.optimisation import descend

_HUBER = 0.1  # asinh of a unit: smaller errors count squared, larger ones as they are


@dataclass(frozen=True)
class TokenLabels:
    """Labels of M tokens, place (M,) int64. A label counts by its weight (M,), which is 0 where it is unknown.

    saving: asinh of units. births (M, 2V): the operators in what was born. taken: the share of cases in which an expert
    took it, now or later; gain: the logarithm of 1 + what that led to, in units.
    """

    place: np.ndarray
    saving: Tensor
    saving_weight: Tensor
    births: Tensor
    births_weight: Tensor
    taken: Tensor
    taken_weight: Tensor
    gain: Tensor
    gain_weight: Tensor


def token_labels(episodes: Sequence[TokenEpisode], operators: np.ndarray) -> TokenLabels:
    """Labels of the tokens in these episodes; operators (T, 2V): what each removes and adds (`edit_operators`)."""
    seen, saving = _savings(episodes, len(operators))
    born, births = _births(episodes, operators)
    shown, taken, gains = _worths(episodes, len(operators))
    place = np.flatnonzero(seen)
    columns = (
        np.arcsinh(saving),
        np.sqrt(seen),
        births / np.maximum(born, 1.0)[:, None],
        born > 0,
        taken / np.maximum(shown, 1e-12),
        shown,
        np.log1p(gains / np.maximum(taken, 1e-12)),
        taken,
    )
    return TokenLabels(place, *(torch.from_numpy(column[place].astype(np.float32)) for column in columns))


def remembered(labels: TokenLabels, before: TokenReading) -> TokenLabels:
    """The labels, where what V told of experts before, of all T tokens, stands in for what no expert shows here.

    Each such token weighs as much as one that an expert shows does on average.
    """
    told, unknown = before.rows(torch.from_numpy(labels.place)), labels.taken_weight == 0
    taken = told.taken.sigmoid()
    weight = labels.taken_weight[~unknown].mean() if not unknown.all() else torch.ones(())
    return replace(
        labels,
        taken=torch.where(unknown, taken, labels.taken),
        taken_weight=torch.where(unknown, weight, labels.taken_weight),
        gain=torch.where(unknown, told.gain, labels.gain),
        gain_weight=torch.where(unknown, weight * taken, labels.gain_weight),
    )


def _savings(episodes: Sequence[TokenEpisode], tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of times that each token was seen, and what it saves in units."""
    seen, saving = np.zeros(tokens), np.zeros(tokens)
    for episode in episodes:
        for state in episode.states:
            np.add.at(seen, state.token, state.count)
            saving[state.token] = state.saving / episode.unit_percent
    return seen, saving


def _births(episodes: Sequence[TokenEpisode], operators: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of times that each token was taken, and the sum of the logarithms of the operators that one bore."""
    taken, births = np.zeros(len(operators)), np.zeros(operators.shape)
    for episode in episodes:
        for before, step, after in zip(episode.states, episode.steps, episode.states[1:], strict=False):
            token = before.token[step.chosen]
            taken[token] += 1
            births[token] += np.log1p(_born_operators(step.born, after.token, operators) / step.taken)
    return taken, births


def _worths(episodes: Sequence[TokenEpisode], tokens: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights by which each token was passed by experts and by which it was taken, and the gains of the latter.

    Every demonstration weighs the same. What is taken weighs more, the more it leads to.
    """
    passed, taken, gains = np.zeros(tokens), np.zeros(tokens), np.zeros(tokens)
    for episode in episodes:
        demonstration = episode.demonstration
        if demonstration is None:
            continue
        share = 1.0 / sum(int(state.count.sum()) for state in episode.states)
        for state, of_class, gain in zip(episode.states, demonstration.taken, demonstration.gain, strict=True):
            units = np.maximum(gain, 0.0) / episode.unit_percent
            positive = share * state.count * of_class * (1.0 + np.log1p(units))
            np.add.at(taken, state.token, positive)
            np.add.at(gains, state.token, positive * units)
            np.add.at(passed, state.token, positive + share * state.count * (1.0 - of_class))
    return passed, taken, gains


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

    def __init__(
        self, encoder: TokenEncoder, table: TokenTable, labels: TokenLabels, config: MatchLevelModelConfig
    ) -> None:
        self.encoder, self.table, self.labels, self.config = encoder, table, labels, config
        self.births = mlp([config.encoder_width, config.encoder_width, labels.births.shape[1]])
        self.parameters = [*encoder.parameters(), *self.births.parameters()]
        self.optimiser = torch.optim.Adam(self.parameters)

    def run_epoch(self, epoch: int, generator: torch.Generator) -> dict[str, float]:
        """Run one pass; returns the mean losses."""
        config = self.config
        self.encoder.train()
        batches = torch.randperm(len(self.labels.place), generator=generator).split(config.encoder_batch)
        totals = dict.fromkeys(("saving", "sigma", "births", "taken", "gain"), 0.0)
        for number, rows in enumerate(batches):
            losses = self._losses(rows)
            loss = losses["saving"] + losses["sigma"] + config.births_weight * losses["births"]
            loss = loss + config.worth_weight * (losses["taken"] + losses["gain"])
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
        huber = functional.smooth_l1_loss(reading.saving, labels.saving[rows], beta=_HUBER, reduction="none")
        residual = (reading.saving - labels.saving[rows]).detach()
        likelihood = 0.5 * (residual / reading.sigma) ** 2 + reading.sigma.log()
        births = functional.smooth_l1_loss(self.births(reading.embedding), labels.births[rows], reduction="none")
        taken = functional.binary_cross_entropy_with_logits(reading.taken, labels.taken[rows], reduction="none")
        gain = functional.smooth_l1_loss(reading.gain, labels.gain[rows], reduction="none")
        return {
            "saving": _mean(huber, labels.saving_weight[rows]),
            "sigma": _mean(likelihood, labels.saving_weight[rows]),
            "births": _mean(births.mean(dim=1), labels.births_weight[rows]),
            "taken": _mean(taken, labels.taken_weight[rows]),
            "gain": _mean(gain, labels.gain_weight[rows]),
        }


def _mean(loss: Tensor, weight: Tensor) -> Tensor:
    """The weighted mean, 0 where nothing weighs."""
    return (loss * weight).sum() / weight.sum().clamp_min(1e-12)
