"""The world model that sees a graph as one vector: V, then M, and their open-loop errors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from tracking.stage import Stage

from rlflow.representation.rollouts import Episode, Rollouts
from rlflow.schemas.figures import BaselineName, Figure
from rlflow.world_model.graph_level import trainer
from rlflow.world_model.graph_level.diagnostics import latent_spread, open_loop
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig, GraphLevelModelConfig
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.graph_level.termination import termination_accuracy
from rlflow.world_model.held_out import split_episodes
from rlflow.world_model.settings import read_config

CURVES = {"encoder/loss": "loss of V"} | {
    f"{split}/{part}": "nats" if part != "loss" else "loss of M"
    for part in ("loss", "latent", "reward", "terminated", "counts", "cost")
    for split in ("memory", "held_out")
}
DRAWN = [name for name in CURVES if name.endswith("/loss")]
TARGETS: dict[str, tuple[str, str, BaselineName]] = {
    "z": ("latent", "latent_copy", "copy"),
    "counts": ("counts", "counts_copy", "copy"),
    "cost": ("cost", "cost_copy", "copy"),
    "reward": ("reward", "reward_mean", "mean"),
}


@dataclass(frozen=True)
class GraphLevelFit:
    """The fit of one graph's world model to its rollouts."""

    rollouts: Rollouts
    config: GraphLevelModelConfig
    seed: int

    @classmethod
    def of(cls, stage: Stage) -> "GraphLevelFit":
        rollouts = Rollouts.load(stage.input(f"{stage.data}/rollouts/{stage.graph}"))
        return cls(rollouts, read_config(GraphLevelModelConfig, stage.settings["world_model"]), stage.seed)

    def run(self, stage: Stage, on_epoch: Callable[[int, dict[str, float]], None]) -> GraphLevelModel:
        """Fit the model, and write it."""
        model = trainer.fit_world_model(
            self.rollouts, self.config, seed=self.seed, checkpoint=stage.checkpoint / "fit.pt", on_epoch=on_epoch
        )
        model.save(stage.output(f"{stage.data}/world_models/{stage.graph}"))
        return model

    def figures(self, stage: Stage, model: GraphLevelModel) -> dict[str, Any]:
        """How far the dream can be trusted, on episodes that were not trained on."""
        latents = model.latents(self.rollouts)
        stage.log(self.config.encoder_epochs + self.config.epochs, latent_spread(latents))
        training, held_out = split_episodes(self.rollouts.episodes, self.config.held_out_fraction, self.seed)
        return _trust(model, self.rollouts, latents, held_out or training, self.seed)


def _trust(
    model: GraphLevelModel, rollouts: Rollouts, latents: Tensor, episodes: list[Episode], seed: int
) -> dict[str, Any]:
    horizons = open_loop(model, rollouts, latents, episodes, GraphLevelDreamConfig(num_envs=1), seed=seed)
    accuracy, majority, cases = termination_accuracy(model, latents, episodes)
    nearest = horizons[min(horizons)]
    return {
        "open_loop": [row for horizon, errors in horizons.items() for row in _open_loop_rows(horizon, errors)],
        "rule_mask_accuracy": Figure(
            nearest["rule_mask"], nearest["rule_mask_majority"], "majority", int(nearest["cases"])
        ).to_json(),
        "terminated_accuracy": Figure(accuracy, majority, "majority", cases).to_json(),
    }


def _open_loop_rows(horizon: int, errors: dict[str, float]) -> list[dict[str, Any]]:
    """The figures of one horizon, one row per target, each beside its baseline."""
    rows = []
    for target, (value, baseline, name) in TARGETS.items():
        figure = Figure(errors[value], errors[baseline], name, int(errors["cases"]))
        rows.append({"target": target, "horizon": horizon, "error": figure.to_json()})
    return rows
