"""Fit V, then M, on episodes over match tokens.

V comes first, on the savings of all matches that were seen and on what those that were taken made possible
(`encoder_fit`). Then V is frozen, every distinct token is read once, and M is fitted on what it reads (`memory_fit`).
At last V's word for its own errors is put right on held-out episodes (`calibration`).

The invariant: the same rollouts, settings and seed give the same weights, to the bit, whether the fit ran through or
was killed and resumed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rlflow.errors import InputError
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.world_model.epochs import OnEpoch, run_epochs
from rlflow.world_model.held_out import split_episodes
from rlflow.world_model.tokens.birth_sets import birth_sets
from rlflow.world_model.tokens.calibration import calibration_factor, relative_errors, unseen
from rlflow.world_model.tokens.config import TokenModelConfig
from rlflow.world_model.tokens.encoder_fit import TokenEncoderFit, edit_operators, token_labels
from rlflow.world_model.tokens.memory_fit import TokenMemoryFit, pairs, same_outcome
from rlflow.world_model.tokens.model import TokenModelArguments, TokenWorldModel
from rlflow.world_model.tokens.token_batch import TokenTable


def fit_token_model(
    rollouts: TokenRollouts,
    config: TokenModelConfig,
    *,
    seed: int,
    begin: TokenWorldModel | None = None,
    checkpoint: Path | None = None,
    on_epoch: OnEpoch | None = None,
) -> TokenWorldModel:
    """A world model fitted on rollouts; the same seed gives the same weights.

    begin: the fit goes on from the weights of that model, which must have the same vocabulary and sizes; None: afresh.
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


class _Fit:
    """All that a fit carries from epoch to epoch (`epochs.Fit`)."""

    def __init__(
        self, rollouts: TokenRollouts, config: TokenModelConfig, seed: int, begin: TokenWorldModel | None
    ) -> None:
        self.config = config
        self.run = _fingerprint(rollouts, config, seed, begin)
        self.generator = torch.Generator().manual_seed(seed)
        arguments = TokenModelArguments(rollouts.vocabulary, rollouts.library_hash, config)
        self.model = TokenWorldModel(arguments)
        if begin is not None:
            begin.check_vocabulary(rollouts)
            self.model.load_state_dict(begin.state_dict())
        training, held_out = split_episodes(len(rollouts.episodes), config.held_out_fraction, seed)
        self.training = [rollouts.episodes[index] for index in training]
        self.held_out = [rollouts.episodes[index] for index in held_out]
        if not any(episode.num_steps for episode in self.training):
            raise InputError("world model: the rollouts hold no step to fit it on; collect more with collect_rollouts")
        self.table = TokenTable(rollouts.tokens)
        self.operators = edit_operators(rollouts.tokens, len(rollouts.vocabulary.operators))
        labels = token_labels(self.training, self.operators)
        self.encoder_fit = TokenEncoderFit(self.model.encoder, self.table, labels, config)
        self.memory_fit: TokenMemoryFit | None = None

    def run_epoch(self, epoch: int) -> dict[str, float]:
        """Run one epoch of V or of M, whichever is due."""
        if epoch < self.config.encoder_epochs:
            return self.encoder_fit.run_epoch(epoch, self.generator)
        return self.turn_to_memory().run_epoch(epoch - self.config.encoder_epochs, self.generator)

    def turn_to_memory(self) -> TokenMemoryFit:
        """Freeze V, read every token and turn to M, the first time that this is called."""
        if self.memory_fit is None:
            embedding = self.model.encoder.eval().read(self.table).embedding
            steps = birth_sets(self.training, self.config.largest_birth_set)
            outcome = same_outcome(steps.sets, self.operators)
            self.memory_fit = TokenMemoryFit(
                self.model.memory, embedding, steps, outcome, pairs(self.training), self.config
            )
        return self.memory_fit

    def calibrate(self) -> None:
        """Set the factor that puts V's sigmas right on what the held-out episodes alone show."""
        if self.held_out:
            errors = relative_errors(self.model.encoder.eval().read(self.table), unseen(self.held_out, self.training))
            self.model.encoder.sigma_factor.mul_(calibration_factor(errors))  # that of `begin` is in the errors

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "births": self.encoder_fit.births.state_dict(),
            "encoder_optimiser": self.encoder_fit.optimiser.state_dict(),
            "memory_optimiser": self.memory_fit.optimiser.state_dict() if self.memory_fit else None,
            "generator": self.generator.get_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.encoder_fit.births.load_state_dict(state["births"])
        self.encoder_fit.optimiser.load_state_dict(state["encoder_optimiser"])
        if state["memory_optimiser"] is not None:
            self.turn_to_memory().optimiser.load_state_dict(state["memory_optimiser"])
        self.generator.set_state(state["generator"])


def _fingerprint(rollouts: TokenRollouts, config: TokenModelConfig, seed: int, begin: TokenWorldModel | None) -> str:
    """Hash of all that a fit depends on."""
    settings = dataclasses.asdict(config) | {
        "seed": seed,
        "library_hash": rollouts.library_hash,
        "vocabulary": dataclasses.asdict(rollouts.vocabulary),
    }
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for weights in begin.state_dict().values() if begin is not None else ():
        digest.update(weights.numpy().tobytes())
    for token in rollouts.tokens:
        digest.update(token.key)
    for episode in rollouts.episodes:
        digest.update(np.float64(episode.unit_percent).tobytes())
        for record in (*episode.states, *episode.steps):
            for value in vars(record).values():
                digest.update(np.asarray(value).tobytes())
        if episode.demonstration is not None:
            digest.update(b"".join(of.tobytes() for of in (*episode.demonstration.taken, *episode.demonstration.gain)))
    return digest.hexdigest()
