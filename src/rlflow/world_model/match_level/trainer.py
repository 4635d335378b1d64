"""Fit V, then M, on episodes over match tokens.

V comes first, on the savings of all matches that were seen and on what those that were taken made possible
(`encoder_fit`). Then V is frozen, every distinct token is read once, and M is fitted on what it reads (`memory_fit`).
At last V's word for its own errors is put right on held-out episodes (`calibration`).

The invariant: the same rollouts, settings and seed give the same weights, to the bit, whether the fit ran through or
was killed and resumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

from rlflow.errors import InputError
from rlflow.kept import fingerprint
from rlflow.representation.token_batch import TokenTable
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.world_model.epochs import OnEpoch, TwoPartFit, run_epochs
from rlflow.world_model.held_out import split_episodes
from rlflow.world_model.match_level.calibration import calibration_factor, relative_errors, unseen
from rlflow.world_model.match_level.encoder_fit import TokenEncoderFit, edit_operators, remembered, token_labels
from rlflow.world_model.match_level.match_deltas import match_deltas
from rlflow.world_model.match_level.match_level_config import MatchLevelModelConfig
from rlflow.world_model.match_level.memory_fit import TokenMemoryFit, pairs, same_outcome
from rlflow.world_model.match_level.model import MatchLevelModel, MatchLevelModelArguments
from rlflow.world_model.match_level.token_encoder import TokenEncoder


def fit_token_model(
    rollouts: TokenRollouts,
    config: MatchLevelModelConfig,
    *,
    seed: int,
    begin: MatchLevelModel | None = None,
    checkpoint: Path | None = None,
    on_epoch: OnEpoch | None = None,
) -> MatchLevelModel:
    """A world model fitted on rollouts; the same seed gives the same weights.

    begin: the fit goes on from the weights of that model, which must have the same vocabulary and sizes; None: afresh.
    What it told of experts is remembered where the rollouts show none.
    checkpoint: a file written after every epoch; if it exists and is of the same run, the fit goes on from it and ends
    with the weights of an uninterrupted one. on_epoch(epoch, metrics): V's epochs come first, with `encoder/...`, then
    M's, with `memory/...`. Raises InputError where the episodes that are not held out have no step.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fit = _Fit(rollouts, config, seed, begin)
    run_epochs(fit, config.encoder_epochs + config.epochs, checkpoint, on_epoch)
    fit.calibrate()
    return fit.model.eval().requires_grad_(False)


class _Fit(TwoPartFit):
    """All that a fit carries from epoch to epoch."""

    def __init__(
        self, rollouts: TokenRollouts, config: MatchLevelModelConfig, seed: int, begin: MatchLevelModel | None
    ) -> None:
        self.config = config
        self.run = _fingerprint(rollouts, config, seed, begin)
        arguments = MatchLevelModelArguments(rollouts.vocabulary, rollouts.library_hash, config)
        self.model = MatchLevelModel(arguments)
        if begin is not None:
            begin.check_vocabulary(rollouts)
            _check_sizes(begin.arguments.config, config)
            self.model.load_state_dict(begin.state_dict())
        self.training, self.held_out = split_episodes(rollouts.episodes, config.held_out_fraction, seed)
        if not any(episode.num_steps for episode in self.training):
            raise InputError("world model: the rollouts hold no step to fit it on; collect more with collect_rollouts")
        self.table = TokenTable(rollouts.tokens)
        self.operators = edit_operators(rollouts.tokens, len(rollouts.vocabulary.operators))
        labels = token_labels(self.training, self.operators)
        if begin is not None:
            labels = remembered(labels, begin.encoder.read(self.table))
        elif not labels.taken_weight.any():
            _know_no_expert(self.model.encoder)
        encoder = TokenEncoderFit(self.model.encoder, self.table, labels, config)
        super().__init__(self.model, encoder, encoder.births, encoder_epochs=config.encoder_epochs, seed=seed)

    def memory_part(self) -> TokenMemoryFit:
        """Freeze V, and read every token."""
        embedding = self.model.encoder.eval().read(self.table).embedding
        steps = match_deltas(self.training, self.config.largest_birth_set)
        outcome = same_outcome(steps.sets, self.operators)
        return TokenMemoryFit(self.model.memory, embedding, steps, outcome, pairs(self.training), self.config)

    def calibrate(self) -> None:
        """Set the factor that puts V's sigmas right on what the held-out episodes alone show."""
        if self.held_out:
            errors = relative_errors(self.model.encoder.eval().read(self.table), unseen(self.held_out, self.training))
            self.model.encoder.sigma_factor.mul_(calibration_factor(errors))  # that of `begin` is in the errors


def _know_no_expert(encoder: TokenEncoder) -> None:
    """Let V tell the same of all tokens where no expert is shown, or a controller would follow noise."""
    last = encoder.worth[-1]
    assert isinstance(last, nn.Linear)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)


def _check_sizes(known: MatchLevelModelConfig, given: MatchLevelModelConfig) -> None:
    """Raise `InputError` where a model has other sizes than the one that it is to go on from."""
    for name in ("encoder_width", "encoder_layers", "metric_width", "survival_width"):
        if (size := getattr(known, name)) != getattr(given, name):
            raise InputError(
                f"world model: {name} is {getattr(given, name)}, and {size} in the model that the fit goes on from: "
                f"world_model.{name}={size}, or pretrained=null for one that begins afresh"
            )


def _fingerprint(
    rollouts: TokenRollouts, config: MatchLevelModelConfig, seed: int, begin: MatchLevelModel | None
) -> str:
    """Hash of all that a fit depends on."""
    return fingerprint(config, seed, rollouts.library_hash, rollouts.vocabulary, content=_content(rollouts, begin))


def _content(rollouts: TokenRollouts, begin: MatchLevelModel | None) -> Iterator[bytes | np.ndarray]:
    for weights in begin.state_dict().values() if begin is not None else ():
        yield weights.numpy()
    for token in rollouts.tokens:
        yield token.key
    for episode in rollouts.episodes:
        yield np.asarray(episode.unit_percent)
        for record in (*episode.states, *episode.steps):
            yield from map(np.asarray, vars(record).values())
        if episode.demonstration is not None:
            yield from (*episode.demonstration.taken, *episode.demonstration.gain)
