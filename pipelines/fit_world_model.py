"""Fit V, then M, on the rollouts, and measure how far the dream can be trusted."""

from typing import Any

from rlflow.evaluation import figures
from rlflow.evaluation.results import Figure, write_results
from rlflow.representation.rollouts import Rollouts
from rlflow.tracking.curves import Curves
from rlflow.tracking.stage import Stage, pipeline_stage
from rlflow.world_model import trainer
from rlflow.world_model.config import DreamConfig, WorldModelConfig
from rlflow.world_model.dataset import split_episodes
from rlflow.world_model.diagnostics import latent_spread, open_loop
from rlflow.world_model.termination import termination_accuracy

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
    rollouts = Rollouts.load(stage.input("data/rollouts"))
    config = WorldModelConfig(**stage.settings["world_model"])
    stopwatch, curves = stage.stopwatch, Curves(stage.checkpoint / "curves.json", "epoch", CURVES)
    epochs = config.encoder_epochs + config.epochs
    with stage.progress("epochs") as on_progress:

        def on_epoch(epoch: int, metrics: dict[str, float]) -> None:
            curves.add(epoch, metrics)
            stopwatch.tick()
            stage.run.log(epoch, metrics)
            on_progress((epoch + 1) / epochs, str(epoch + 1))

        model = trainer.fit_world_model(
            rollouts, config, seed=stage.seed, checkpoint=stage.checkpoint / "fit.pt", on_epoch=on_epoch
        )
    training_s = stopwatch.tick()
    model.save(stage.output("data/world_models"))

    training, held_out = split_episodes(len(rollouts.episodes), config.held_out_fraction, stage.seed)
    episodes = [rollouts.episodes[i] for i in held_out or training]
    horizons = open_loop(model, rollouts, episodes, DreamConfig(num_envs=1), seed=stage.seed)
    accuracy, majority, cases = termination_accuracy(model, rollouts, episodes)
    nearest = horizons[min(horizons)]
    metrics = {
        "training_episodes": len(training),
        "held_out_episodes": len(held_out),
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "epochs": epochs,
        "losses": {name: curve["value"][-1] for name, curve in curves.to_json().items()},
        "open_loop": [row for horizon, errors in horizons.items() for row in _open_loop_rows(horizon, errors)],
        "rule_mask_accuracy": Figure(
            nearest["rule_mask"], nearest["rule_mask_majority"], "majority", int(nearest["cases"])
        ).to_json(),
        "terminated_accuracy": Figure(accuracy, majority, "majority", cases).to_json(),
        "training_s": training_s,
        "seed": stage.seed,
    }
    write_results(stage.metrics, metrics)
    write_results(stage.output(f"{RESULTS}/curves.json"), curves.to_json())
    figure = stage.output(f"{RESULTS}/curves.png")
    drawn = {name: curve for name, curve in curves.to_json().items() if name.endswith("/loss")}
    figures.save(figures.training_curves(drawn), figure)
    stage.run.artifact(figure)
    stage.report(metrics | latent_spread(model, rollouts.graphs))


def _open_loop_rows(horizon: int, errors: dict[str, float]) -> list[dict[str, Any]]:
    """The figures of one horizon, one row per target, each beside its baseline."""
    rows = []
    for target, (value, baseline, name) in TARGETS.items():
        figure = Figure(errors[value], errors[baseline], name, int(errors["cases"]))
        rows.append({"target": target, "horizon": horizon, "error": figure.to_json()})
    return rows


if __name__ == "__main__":
    fit_world_model()
