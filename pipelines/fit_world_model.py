"""Fit V, then M, on the rollouts, and measure how far the dream can be trusted."""

from typing import Any

from experiment import figures, plot_rows
from experiment.curves import Curves
from experiment.documents.curves import TrainingCurves
from experiment.documents.fit_world_model import FitWorldModel
from experiment.formulations.world_models import world_model_of
from experiment.results import write_results
from experiment.stage_summaries import of_world_model, write_summary
from tracking.stage import Stage, pipeline_stage

from rlflow.show.picture_file import save
from rlflow.world_model.held_out import split_episodes


@pipeline_stage
def fit_world_model(stage: Stage) -> None:
    fits = stage.graphs_at_once(_fit)
    metrics = {graph: found for graph, (found, _) in fits.items()}
    curves = {graph: course for graph, (_, course) in fits.items()}
    chosen = world_model_of(stage.settings).DRAWN
    drawn = {graph: {name: course[name] for name in chosen if name in course} for graph, course in curves.items()}
    write_results(stage.metrics, FitWorldModel, metrics)
    write_summary(stage.summary, of_world_model(metrics))
    write_results(stage.output(f"{stage.results}/curves.json"), TrainingCurves, curves)
    rows = {
        "losses.csv": plot_rows.losses(curves),
        "dream_errors.csv": plot_rows.dream_errors(metrics),
        "calibration.csv": plot_rows.calibration(metrics),
    }
    for name, points in rows.items():
        plot_rows.write_rows(stage.output(f"{stage.results}/{name}"), points)
    pictures = {"curves.png": figures.training_curves(drawn), "trust.png": figures.trust(metrics)}
    for name, picture in pictures.items():
        save(picture, stage.output(f"{stage.results}/{name}"))
        stage.run.artifact(stage.output(f"{stage.results}/{name}"))
    stage.report(metrics)


def _fit(stage: Stage) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fit a world model to the rollouts of one graph; returns its figures and its curves."""
    world_model = world_model_of(stage.settings)
    rollouts, config = world_model.rollouts(stage), world_model.config(stage)
    stopwatch, curves = stage.stopwatch, Curves(stage.checkpoint / "curves.json", "epoch", world_model.CURVES)
    epochs = config.encoder_epochs + config.epochs
    with stage.progress(f"{stage.graph}, epochs") as on_progress:

        def on_epoch(epoch: int, metrics: dict[str, float]) -> None:
            curves.add(epoch, metrics)
            stopwatch.tick()
            stage.log(epoch, metrics)
            on_progress((epoch + 1) / epochs, str(epoch + 1))

        model = world_model.fit(stage, rollouts, config, on_epoch)
    training_s = stopwatch.tick()
    training, held_out = split_episodes(rollouts.episodes, config.held_out_fraction, stage.seed)
    with stage.progress(f"{stage.graph}, held-out episodes") as on_progress:
        on_progress(0.0, "how far the dream can be trusted")
        trust = world_model.trust(stage, model, rollouts, training, held_out or training)
    metrics = {
        "training_episodes": len(training),
        "held_out_episodes": len(held_out),
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "epochs": epochs,
        "losses": {name: curve["value"][-1] for name, curve in curves.to_json().items()},
        **trust,
        "training_s": training_s,
        "seed": stage.seed,
    }
    return metrics, curves.to_json()


if __name__ == "__main__":
    fit_world_model()
