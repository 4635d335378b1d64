"""Train the policy inside the dream, then score it on the real graph."""

from rlflow.agents.config import ControllerConfig
from rlflow.agents.dream_training import mean_improvement_percent, train_in_dream
from rlflow.agents.policy_optimiser import judge_on
from rlflow.environments import EnvironmentConfig
from rlflow.evaluation import figures
from rlflow.evaluation.results import Figure, write_results
from rlflow.representation.rollouts import Rollouts
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.tracking.curves import Curves
from rlflow.tracking.factories import agent_rules, cost_model_of, graph_of, save_prices
from rlflow.tracking.stage import Stage, pipeline_stage
from rlflow.world_model.config import DreamConfig
from rlflow.world_model.model import WorldModel

RESULTS = "data/results/train_controller"
CURVES = {
    "return_percent": "% in the dream",
    "real_score_percent": "% on the graph",
    "episode_length": "steps",
    "train/entropy_loss": "nats",
}


@pipeline_stage
def train_controller(stage: Stage) -> None:
    settings = stage.settings
    model = WorldModel.load(stage.input("data/world_models"))
    rollouts = Rollouts.load(stage.input("data/rollouts"))
    dream = DreamConfig(**settings["controller"]["dream"])
    config = ControllerConfig(**settings["controller"]["ppo"])
    rules = agent_rules(stage.input("data/rules"))
    cost_model = cost_model_of(settings["cost"], stage.input("data/rollouts/prices.json"))
    environment = EnvironmentConfig(**settings["environment"])
    judge = judge_on(graph_of(settings["graph"]), rules, Rewriter(rules.rules), cost_model, model, environment)

    stopwatch, curves = stage.stopwatch, Curves(stage.checkpoint / "curves.json", "update", CURVES)
    updates = -(-config.total_steps // (dream.num_envs * config.steps_per_update))
    with stage.progress("updates") as on_progress:

        def on_update(update: int, metrics: dict[str, float]) -> None:
            curves.add(update, metrics)
            stopwatch.tick()
            stage.run.log(update, metrics)
            on_progress(update / updates, f"{metrics.get('return_percent', 0.0):.1f} %")

        training = train_in_dream(
            model,
            rollouts,
            dream,
            config,
            seed=stage.seed,
            checkpoint=stage.checkpoint / "training.pt",
            on_update=on_update,
            judge=judge,
        )
    training_s = stopwatch.tick()

    training.controller.save(stage.output("data/policies"))
    alone = judge(training.controller)
    save_prices(cost_model, stage.output("data/prices/train_controller.json"))
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
    write_results(stage.metrics, metrics)
    write_results(stage.output(f"{RESULTS}/curves.json"), curves.to_json())
    figure = stage.output(f"{RESULTS}/curves.png")
    figures.save(figures.training_curves(curves.to_json()), figure)
    stage.run.artifact(figure)
    stage.report(metrics)


if __name__ == "__main__":
    train_controller()
