"""Fit V, then M, on the rollouts, and measure how far the dream can be trusted."""

from typing import Any

from torch import Tensor

from rlflow.evaluation import figures
from rlflow.evaluation.results import Figure, write_results
from rlflow.representation.rollouts import Episode, Rollouts
from rlflow.tracking.curves import Curves
from rlflow.tracking.stage import Stage, pipeline_stage
from rlflow.world_model.held_out import split_episodes
from rlflow.world_model.pooled import trainer
from rlflow.world_model.pooled.config import DreamConfig, WorldModelConfig
from rlflow.world_model.pooled.diagnostics import latent_spread, open_loop
from rlflow.world_model.pooled.model import WorldModel
from rlflow.world_model.pooled.termination import termination_accuracy

RESULTS = "data/results/fit_world_model"
CURVES = {"encoder/loss": "loss of V"} | {
    f"{split}/{part}": "nats" if part != "loss" else "loss of M"
    for part in ("loss", "latent", "reward", "terminated", "counts", "cost")
    for split in ("memory", "held_out")
}
TARGETS = {
    "z": ("latent", "latent_copy", "copy"),
    "counts": ("counts", "counts_copy", "copy"),
    "cost": ("cost", "cost_copy", "copy"),
    "reward": ("reward", "reward_mean", "mean"),
}


@pipeline_stage
def fit_world_model(stage: Stage) -> None:
    fits = stage.each_graph(_fit)
    metrics = {graph: found for graph, (found, _) in fits.items()}
    curves = {graph: course for graph, (_, course) in fits.items()}
    write_results(stage.metrics, metrics)
    write_results(stage.output(f"{RESULTS}/curves.json"), curves)
    figure = stage.output(f"{RESULTS}/curves.png")
    figures.save(figures.training_curves({graph: _losses(course) for graph, course in curves.items()}), figure)
    stage.run.artifact(figure)
    stage.report(metrics)


def _fit(stage: Stage) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fit a world model to the rollouts of one graph; returns its figures and its curves."""
    rollouts = Rollouts.load(stage.input(f"data/rollouts/{stage.graph}"))
    config = WorldModelConfig(**stage.settings["world_model"])
    stopwatch, curves = stage.stopwatch, Curves(stage.checkpoint / "curves.json", "epoch", CURVES)
    epochs = config.encoder_epochs + config.epochs
    with stage.progress(f"{stage.graph}, epochs") as on_progress:

        def on_epoch(epoch: int, metrics: dict[str, float]) -> None:
            curves.add(epoch, metrics)
            stopwatch.tick()
            stage.log(epoch, metrics)
            on_progress((epoch + 1) / epochs, str(epoch + 1))

        model = trainer.fit_world_model(
            rollouts, config, seed=stage.seed, checkpoint=stage.checkpoint / "fit.pt", on_epoch=on_epoch
        )
    training_s = stopwatch.tick()
    model.save(stage.output(f"data/world_models/{stage.graph}"))
    latents = model.latents(rollouts)
    stage.log(epochs, latent_spread(latents))

    training, held_out = split_episodes(len(rollouts.episodes), config.held_out_fraction, stage.seed)
    metrics = {
        "training_episodes": len(training),
        "held_out_episodes": len(held_out),
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "epochs": epochs,
        "losses": {name: curve["value"][-1] for name, curve in curves.to_json().items()},
        **_trust(model, rollouts, latents, [rollouts.episodes[i] for i in held_out or training], stage.seed),
        "training_s": training_s,
        "seed": stage.seed,
    }
    return metrics, curves.to_json()


def _trust(
    model: WorldModel, rollouts: Rollouts, latents: Tensor, episodes: list[Episode], seed: int
) -> dict[str, Any]:
    """How far the dream can be trusted in these episodes."""
    horizons = open_loop(model, rollouts, latents, episodes, DreamConfig(num_envs=1), seed=seed)
    accuracy, majority, cases = termination_accuracy(model, latents, episodes)
    nearest = horizons[min(horizons)]
    return {
        "open_loop": [row for horizon, errors in horizons.items() for row in _open_loop_rows(horizon, errors)],
        "rule_mask_accuracy": Figure(
            nearest["rule_mask"], nearest["rule_mask_majority"], "majority", int(nearest["cases"])
        ).to_json(),
        "terminated_accuracy": Figure(accuracy, majority, "majority", cases).to_json(),
    }


def _losses(curves: dict[str, Any]) -> dict[str, Any]:
    """The curves that are drawn."""
    return {name: curve for name, curve in curves.items() if name.endswith("/loss")}


def _open_loop_rows(horizon: int, errors: dict[str, float]) -> list[dict[str, Any]]:
    """The figures of one horizon, one row per target, each beside its baseline."""
    rows = []
    for target, (value, baseline, name) in TARGETS.items():
        figure = Figure(errors[value], errors[baseline], name, int(errors["cases"]))
        rows.append({"target": target, "horizon": horizon, "error": figure.to_json()})
    return rows


if __name__ == "__main__":
    fit_world_model()
