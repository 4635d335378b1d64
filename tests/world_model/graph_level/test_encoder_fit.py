"""V learns to tell graphs apart, with all dimensions of z."""

from dataclasses import replace

import torch
from support.world_models import SMALL

from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.graph_level.trainer import fit_world_model


def test_v_learns_to_tell_graphs_apart(rollouts: Rollouts) -> None:
    metrics: list[dict[str, float]] = []
    config = replace(SMALL, encoder_epochs=6, encoder_steps=50, epochs=0)
    fit_world_model(rollouts, config, seed=0, on_epoch=lambda _, values: metrics.append(values))
    assert metrics[-1]["encoder/loss"] < 0.5 * metrics[0]["encoder/loss"]


def test_no_dimension_of_z_collapses(rollouts: Rollouts, world_model: GraphLevelModel) -> None:
    z = world_model.encoder.encode(rollouts.graphs)
    torch.testing.assert_close(z.var(dim=0, correction=0), torch.ones(z.shape[1]), atol=1e-3, rtol=0)
