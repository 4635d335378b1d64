"""Train the policy inside the dream, then score it on the real graph."""

from collections.abc import Callable
from functools import partial
from typing import Any

from rlflow.agents.pooled.config import ControllerConfig
from rlflow.agents.pooled.dream_training import train_in_dream
from rlflow.agents.pooled.policy_optimiser import judge_on
from rlflow.agents.scores import mean_improvement_percent
from rlflow.cost.base import CostModel
from rlflow.environments import EnvironmentConfig
from rlflow.evaluation import figures
from rlflow.evaluation.results import Figure, write_results
from rlflow.representation.rollouts import Rollouts
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.tracking.curves import Curves
from rlflow.tracking.factories import agent_rules, graph_of, priced, save_prices
from rlflow.tracking.stage import Stage, pipeline_stage
from rlflow.world_model.pooled.config import DreamConfig
from rlflow.world_model.pooled.dream_env import visited_states
from rlflow.world_model.pooled.model import WorldModel

RESULTS = "data/results/train_controller"
CURVES = {
    "return_percent": "% in the dream",
    "real_score_percent": "% on the graph",
    "episode_length": "steps",
    "train/entropy_loss": "nats",
}


@pipeline_stage
def train_controller(stage: Stage) -> None:
    cost_model, keep_prices = priced(stage, stage.input("data/prices/collect_rollouts.json"))
    trained = stage.each_graph(partial(_train, cost_model=cost_model, keep_prices=keep_prices))
    metrics = {graph: found for graph, (found, _) in trained.items()}
    curves = {graph: course for graph, (_, course) in trained.items()}
    save_prices(cost_model, stage.output("data/prices/train_controller.json"))
    write_results(stage.metrics, metrics)
    write_results(stage.output(f"{RESULTS}/curves.json"), curves)
    figure = stage.output(f"{RESULTS}/curves.png")
    figures.save(figures.training_curves(curves), figure)
    stage.run.artifact(figure)
    stage.report(metrics)


def _train(
    stage: Stage, cost_model: CostModel, keep_prices: Callable[[], None]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Train in the dream of one graph; returns the figures of the training and its curves."""
    model = WorldModel.load(stage.input(f"data/world_models/{stage.graph}"))
    rollouts = Rollouts.load(stage.input(f"data/rollouts/{stage.graph}"))
    dream = DreamConfig(**stage.settings["controller"]["dream"])
    config = ControllerConfig(**stage.settings["controller"]["ppo"])
    rules = agent_rules(stage.input("data/rules"), stage.graph)
    environment = EnvironmentConfig(**stage.settings["environment"])
    judge = judge_on(graph_of(stage.settings["graph"]), rules, Rewriter(rules.rules), cost_model, model, environment)

    stopwatch, curves = stage.stopwatch, Curves(stage.checkpoint / "curves.json", "update", CURVES)
    updates = -(-config.total_steps // (dream.num_envs * config.steps_per_update))
    with stage.progress(f"{stage.graph}, updates") as on_progress:

        def on_update(update: int, metrics: dict[str, float]) -> None:
            curves.add(update, metrics)
            stopwatch.tick()
            stage.log(update, metrics)
            on_progress(update / updates, f"{metrics.get('return_percent', 0.0):.1f} %")

        training = train_in_dream(
            model,
            visited_states(model, rollouts),
            dream,
            config,
            seed=stage.seed,
            checkpoint=stage.checkpoint / "training.pt",
            on_update=on_update,
            judge=judge,
        )
    training_s = stopwatch.tick()
    keep_prices()

    training.controller.save(stage.output(f"data/policies/{stage.graph}"))
    alone = judge(training.controller)
    steps = updates * dream.num_envs * config.steps_per_update
    random = mean_improvement_percent(rollouts.episodes)
    metrics = {
        "updates": updates,
        "dream_steps": steps,
        "dream_steps_per_s": steps / training_s,
        "temperature": dream.temperature,
        "dream_score_percent": Figure(
            training.score_percent, training.untrained_percent, "untrained", dream.num_envs
        ).to_json(),
        "real_score_percent": Figure(alone.score_percent, random, "random", 1).to_json(),
        "real_interactions": training.real_interactions + alone.interactions,
        "training_s": training_s,
        "seed": stage.seed,
    }
    return metrics, curves.to_json()


if __name__ == "__main__":
    train_controller()
