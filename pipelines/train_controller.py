"""Train the policy inside the dream, score it on the real graph, and write down its trajectories there."""

from collections.abc import Callable
from statistics import fmean
from typing import Any

from experiment import figures, plot_rows
from experiment.curves import Curves
from experiment.documents.curves import TrainingCurves
from experiment.documents.train_controller import TrainController
from experiment.formulations.controllers import controller_of
from experiment.results import write_results
from experiment.stage_summaries import of_controller, write_summary
from tracking.factories import each_priced_graph
from tracking.stage import Stage, pipeline_stage

from rlflow.cost.base import CostModel
from rlflow.schemas.figures import Figure
from rlflow.show.picture_file import save
from rlflow.trajectory import record

CURVES = {
    "return_percent": "% in the dream",
    "best_return_percent": "% in the dream",
    "real_score_percent": "% on the graph",
    "episode_length": "steps",
    "train/entropy_loss": "nats",
    "sigma": "of the weights",
}


@pipeline_stage
def train_controller(stage: Stage) -> float:
    start = stage.input("data/prices/collect_rollouts.json")
    end = stage.output("data/prices/train_controller.json")
    trained = each_priced_graph(stage, start, end, _train)
    metrics = {graph: found for graph, (found, _) in trained.items()}
    curves = {graph: course for graph, (_, course) in trained.items()}
    write_results(stage.metrics, TrainController, metrics)
    write_summary(stage.summary, of_controller(metrics))
    write_results(stage.output(f"{stage.results}/curves.json"), TrainingCurves, curves)
    plot_rows.write_rows(stage.output(f"{stage.results}/scores.csv"), plot_rows.training_scores(curves))
    figure = stage.output(f"{stage.results}/curves.png")
    save(figures.training_curves(curves), figure)
    stage.run.artifact(figure)
    stage.report(metrics)
    return fmean(found["real_score_percent"]["value"] for found in metrics.values())


def _train(
    stage: Stage, cost_model: CostModel, keep_prices: Callable[[], None]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Train in the dream of one graph; returns the figures of the training and its curves."""
    stopwatch, curves = stage.stopwatch, Curves(stage.checkpoint / "curves.json", "update", CURVES)
    settings = stage.settings["controller"]
    with stage.progress(f"{stage.graph}, random episodes") as on_progress:
        on_progress(0.0, "on the graph")
        whole = controller_of(stage.settings).trainer(stage, cost_model)
    trainer = whole.shortened(settings["training_share"], settings["dream"]["temperature"])
    with stage.progress(f"{stage.graph}, updates") as on_progress:

        def on_round(number: int, metrics: dict[str, float]) -> None:
            curves.add(number, metrics)
            stopwatch.tick()
            stage.log(number, metrics)
            on_progress(number / trainer.rounds, f"{metrics.get('return_percent', 0.0):.1f} %")

        training = trainer.train(
            seed=stage.seed, checkpoint=stage.checkpoint / "training.pt", on_round=on_round, judge=trainer.judge
        )
    training_s = stopwatch.tick()
    keep_prices()

    policy = stage.output(f"data/policies/{stage.graph}")
    trainer.save(training.controller, policy)
    with stage.progress(f"{stage.graph}, episodes of the policy") as on_progress:
        on_progress(0.0, "on the graph")
        alone = trainer.judge(training.controller)
        on_progress(0.5, "on the graph")
        visits = trainer.visits(training.controller)
    record.save(visits.trajectories, policy / "ways.jsonl")
    metrics = {
        "updates": trainer.rounds,
        "dream_steps": trainer.dream_steps,
        "dream_steps_per_s": trainer.dream_steps / training_s,
        "temperature": settings["dream"]["temperature"],
        "dream_score_percent": Figure(
            training.score_percent,
            training.untrained_percent,
            "untrained",
            trainer.dream.config.num_envs,
        ).to_json(),
        "real_score_percent": Figure(alone.score_percent, trainer.random_percent, "random", 1).to_json(),
        "real_interactions": training.rewrites + alone.rewrites + visits.rewrites,
        "training_s": training_s,
        "seed": stage.seed,
    }
    return metrics, curves.to_json()


if __name__ == "__main__":
    train_controller()
