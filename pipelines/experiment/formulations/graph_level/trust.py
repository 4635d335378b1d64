"""Figures that tell how far the dream of one vector can be trusted: errors of M, open loop, and of foreseen ends."""

from collections.abc import Sequence
from typing import Any

from tracking.stage import Stage

from rlflow.representation.rollouts import Episode, Rollouts
from rlflow.schemas.figures import BaselineName, Figure
from rlflow.world_model.graph_level.diagnostics import latent_spread, open_loop
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.graph_level.termination import termination_accuracy

TARGETS: dict[str, tuple[str, str, BaselineName]] = {
    "z": ("latent", "latent_copy", "copy"),
    "counts": ("counts", "counts_copy", "copy"),
    "cost": ("cost", "cost_copy", "copy"),
    "reward": ("reward", "reward_mean", "mean"),
}


def figures(stage: Stage, model: GraphLevelModel, rollouts: Rollouts, held_out: Sequence[Episode]) -> dict[str, Any]:
    """Return the errors of dreams that are led through held-out episodes.

    How latents are spread is logged after the last epoch.
    """
    latents, config = model.latents(rollouts), model.arguments.config
    stage.log(config.encoder_epochs + config.epochs, latent_spread(latents))
    horizons = open_loop(model, rollouts, latents, held_out, GraphLevelDreamConfig(num_envs=1), seed=stage.seed)
    accuracy, majority, cases = termination_accuracy(model, latents, held_out)
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
