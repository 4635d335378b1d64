"""Fit V, then M, on the rollouts of a random agent.

V comes first: heads on z must tell counts, cost, operators and the effect of the applied rule, on the graphs of random
transitions (`encoder_fit`). Then V is frozen, every distinct graph is encoded once, and M is fitted on the latents
(`memory_fit`). They are fitted one after the other, as in World Models (Ha and Schmidhuber 2018), because M's loss
alone would reward a latent that never changes.

The invariant: the same rollouts, settings and seed give the same weights, to the bit, whether the fit ran through or
was killed and resumed.
"""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from rlflow.errors import InputError
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.epochs import OnEpoch, run_epochs
from rlflow.world_model.held_out import split_episodes
from rlflow.world_model.pooled.config import WorldModelConfig
from rlflow.world_model.pooled.dataset import pad_episodes
from rlflow.world_model.pooled.encoder_fit import EncoderFit
from rlflow.world_model.pooled.memory_fit import MemoryFit
from rlflow.world_model.pooled.model import WorldModel, WorldModelArguments


def fit_world_model(
    rollouts: Rollouts,
    config: WorldModelConfig,
    *,
    seed: int,
    checkpoint: Path | None = None,
    on_epoch: OnEpoch | None = None,
) -> WorldModel:
    """A world model fitted on rollouts; the same seed gives the same weights.

    checkpoint: a file written after every epoch; if it exists and is of the same run, the fit goes on from it and ends
    with the weights of an uninterrupted one. on_epoch(epoch, metrics): V's epochs come first, with `encoder/...`, then
    M's, with `memory/...` and, for the held-out episodes, `held_out/...`. Raises InputError for rollouts without a
    step.
    """
    if not rollouts.num_steps:
        raise InputError("world model: the rollouts hold no step; collect some with collect_rollouts")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fit = _Fit(rollouts, config, seed)
    run_epochs(fit, config.encoder_epochs + config.epochs, checkpoint, on_epoch)
    fit.finish_encoder()
    return fit.model.eval().requires_grad_(False)


class _Fit:
    """All that a fit carries from epoch to epoch (`epochs.Fit`)."""

    def __init__(self, rollouts: Rollouts, config: WorldModelConfig, seed: int) -> None:
        self.rollouts, self.config = rollouts, config
        self.run = _fingerprint(rollouts, config, seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.model = WorldModel(WorldModelArguments.of(rollouts, config))
        training, held_out = split_episodes(len(rollouts.episodes), config.held_out_fraction, seed)
        self.training = pad_episodes([rollouts.episodes[i] for i in training])
        self.held_out = pad_episodes([rollouts.episodes[i] for i in held_out]) if held_out else None
        self.encoder_fit = EncoderFit(self.model.encoder, rollouts, self.training, config)
        self.memory_fit: MemoryFit | None = None

    def run_epoch(self, epoch: int) -> dict[str, float]:
        """Run one epoch of V or of M, whichever is due."""
        if epoch < self.config.encoder_epochs:
            return self.encoder_fit.run_epoch(epoch, self.generator)
        return self.finish_encoder().run_epoch(epoch - self.config.encoder_epochs, self.generator)

    def finish_encoder(self) -> MemoryFit:
        """Freeze V, encode every graph and turn to M, the first time that this is called."""
        if self.memory_fit is None:
            latents = self.model.encoder.eval().standardise_over(self.rollouts.graphs)
            self.memory_fit = MemoryFit(self.model.memory, latents, self.training, self.held_out, self.config)
        return self.memory_fit

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "objective": self.encoder_fit.objective.state_dict(),
            "encoder_optimiser": self.encoder_fit.optimiser.state_dict(),
            "memory_optimiser": self.memory_fit.optimiser.state_dict() if self.memory_fit else None,
            "generator": self.generator.get_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.encoder_fit.objective.load_state_dict(state["objective"])
        self.encoder_fit.optimiser.load_state_dict(state["encoder_optimiser"])
        if state["memory_optimiser"] is not None:
            self.finish_encoder().optimiser.load_state_dict(state["memory_optimiser"])
            self.model.load_state_dict(state["model"])  # the turn to M has set M's tables afresh
        self.generator.set_state(state["generator"])


def _fingerprint(rollouts: Rollouts, config: WorldModelConfig, seed: int) -> str:
    """Hash of all that a fit depends on."""
    digest = hashlib.sha256()
    settings: dict[str, Any] = dataclasses.asdict(config) | {
        "seed": seed,
        "rule_ids": rollouts.rule_ids,
        "library_hash": rollouts.library_hash,
        "vocabulary": dataclasses.asdict(rollouts.vocabulary),
        "max_locations": rollouts.action_space.max_locations,
    }
    digest.update(json.dumps(settings, sort_keys=True).encode())
    for record in (*rollouts.graphs, *rollouts.episodes):
        for array in vars(record).values():
            digest.update(array.tobytes())
    return digest.hexdigest()
