"""The world model of one vector: its curves, its fit, and how far its dream can be trusted."""

from collections.abc import Mapping, Sequence
from typing import Any

from tracking.stage import Stage

from experiment.formulations.graph_level.trust import figures
from rlflow.representation.rollouts import Episode, Rollouts
from rlflow.settings import read_config
from rlflow.world_model.epochs import OnEpoch
from rlflow.world_model.graph_level.graph_level_config import GraphLevelModelConfig
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.graph_level.trainer import fit_world_model

CURVES: Mapping[str, str] = {"encoder/loss": "loss of V"} | {
    f"{split}/{part}": "nats" if part != "loss" else "loss of M"
    for part in ("loss", "latent", "reward", "terminated", "counts", "cost")
    for split in ("memory", "held_out")
}
DRAWN: Sequence[str] = [name for name in CURVES if name.endswith("/loss")]


def config(stage: Stage) -> GraphLevelModelConfig:
    return read_config(GraphLevelModelConfig, stage.settings["world_model"])


def rollouts(stage: Stage) -> Rollouts:
    return Rollouts.load(stage.input(f"data/rollouts/{stage.graph}"))


def fit(stage: Stage, rollouts: Rollouts, config: GraphLevelModelConfig, on_epoch: OnEpoch) -> GraphLevelModel:
    checkpoint = stage.checkpoint / "fit.pt"
    model = fit_world_model(rollouts, config, seed=stage.seed, checkpoint=checkpoint, on_epoch=on_epoch)
    model.save(stage.output(f"data/world_models/{stage.graph}"))
    return model


def trust(
    stage: Stage,
    model: GraphLevelModel,
    rollouts: Rollouts,
    training: Sequence[Episode],
    held_out: Sequence[Episode],
) -> dict[str, Any]:
    return figures(stage, model, rollouts, held_out)
