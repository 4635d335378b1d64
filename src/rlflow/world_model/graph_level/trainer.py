"""Fit V, then M, on the rollouts of a random agent.

V comes first: heads on z must tell counts, cost, operators and the effect of the applied rule, on the graphs of random
transitions (`encoder_fit`). Then V is frozen, every distinct graph is encoded once, and M is fitted on the latents
(`memory_fit`). They are fitted one after the other, as in World Models (Ha and Schmidhuber 2018), because M's loss
alone would reward a latent that never changes.

The invariant: the same rollouts, settings and seed give the same weights, to the bit, whether the fit ran through or
was killed and resumed.
"""

from pathlib import Path

import torch

from rlflow.errors import InputError
from rlflow.kept import fingerprint
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.epochs import OnEpoch, TwoPartFit, run_epochs
from rlflow.world_model.graph_level.dataset import pad_episodes
from rlflow.world_model.graph_level.encoder_fit import EncoderFit
from rlflow.world_model.graph_level.graph_level_config import GraphLevelModelConfig
from rlflow.world_model.graph_level.memory_fit import MemoryFit
from rlflow.world_model.graph_level.model import GraphLevelModel, WorldModelArguments
from rlflow.world_model.held_out import split_episodes


def fit_world_model(
    rollouts: Rollouts,
    config: GraphLevelModelConfig,
    *,
    seed: int,
    checkpoint: Path | None = None,
    on_epoch: OnEpoch | None = None,
) -> GraphLevelModel:
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
    fit.turn_to_memory()
    return fit.model.eval().requires_grad_(False)


class _Fit(TwoPartFit):
    """All that a fit carries from epoch to epoch."""

    def __init__(self, rollouts: Rollouts, config: GraphLevelModelConfig, seed: int) -> None:
        self.rollouts, self.config = rollouts, config
        self.run = _fingerprint(rollouts, config, seed)
        self.model = GraphLevelModel(WorldModelArguments.of(rollouts, config))
        training, held_out = split_episodes(rollouts.episodes, config.held_out_fraction, seed)
        self.training = pad_episodes(training)
        self.held_out = pad_episodes(held_out) if held_out else None
        encoder = EncoderFit(self.model.encoder, rollouts, self.training, config)
        super().__init__(self.model, encoder, encoder.objective, encoder_epochs=config.encoder_epochs, seed=seed)

    def memory_part(self) -> MemoryFit:
        """Freeze V, and encode every graph."""
        latents = self.model.encoder.eval().standardise_over(self.rollouts.graphs)
        return MemoryFit(self.model.memory, latents, self.training, self.held_out, self.config)


def _fingerprint(rollouts: Rollouts, config: GraphLevelModelConfig, seed: int) -> str:
    """Hash of all that a fit depends on."""
    known = (rollouts.rule_ids, rollouts.library_hash, rollouts.vocabulary, rollouts.action_space)
    records = (*rollouts.graphs, *rollouts.episodes)
    return fingerprint(config, seed, *known, content=(array for record in records for array in vars(record).values()))
