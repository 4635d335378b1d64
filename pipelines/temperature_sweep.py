"""The paper's Table 3: train at several temperatures of the dream, and score each policy there and in reality."""

import dataclasses
import itertools
from collections import defaultdict
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
from rlflow.evaluation.results import write_results
from rlflow.representation.rollouts import Rollouts
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.timing.statistics import estimate
from rlflow.tracking.factories import agent_rules, graph_of, priced, save_prices
from rlflow.tracking.run import open_child
from rlflow.tracking.stage import Stage, pipeline_stage
from rlflow.world_model.pooled.config import DreamConfig
from rlflow.world_model.pooled.dream_env import visited_states
from rlflow.world_model.pooled.model import WorldModel


@pipeline_stage
def temperature_sweep(stage: Stage) -> None:
    cost_model, keep_prices = priced(stage, stage.input("data/prices/collect_rollouts.json"))
    metrics = stage.each_graph(partial(_sweep, cost_model=cost_model, keep_prices=keep_prices))
    save_prices(cost_model, stage.output("data/prices/temperature_sweep.json"))
    write_results(stage.metrics, metrics)
    picture = stage.output("data/results/temperature_sweep/temperature_sweep.png")
    figures.save(figures.temperature_sweep(metrics), picture)
    stage.report({graph: {str(p["temperature"]): p for p in sweep["points"]} for graph, sweep in metrics.items()})


def _sweep(stage: Stage, cost_model: CostModel, keep_prices: Callable[[], None]) -> dict[str, Any]:
    """The scores of all temperatures on one graph."""
    settings = stage.settings
    model = WorldModel.load(stage.input(f"data/world_models/{stage.graph}"))
    rollouts = Rollouts.load(stage.input(f"data/rollouts/{stage.graph}"))
    rules = agent_rules(stage.input("data/rules"), stage.graph)
    environment = EnvironmentConfig(**settings["environment"])
    judge = judge_on(graph_of(settings["graph"]), rules, Rewriter(rules.rules), cost_model, model, environment)
    dream, starts = DreamConfig(**settings["controller"]["dream"]), visited_states(model, rollouts)
    sweep = settings["sweep"]
    config = ControllerConfig(**(settings["controller"]["ppo"] | {"total_steps": sweep["total_steps"]}))

    scores: dict[float, list[tuple[float, float]]] = defaultdict(list)
    jobs = list(itertools.product(sweep["temperatures"], sweep["seeds"]))
    with stage.progress(f"{stage.graph}, trainings") as on_progress:
        for number, (temperature, seed) in enumerate(jobs):
            on_progress(number / len(jobs), f"temperature {temperature}, seed {seed}")
            name = f"{stage.graph}/temperature={temperature}/seed={seed}"
            with open_child(stage.run, name, parameters={"temperature": temperature, "seed": seed}) as child:
                training = train_in_dream(
                    model,
                    starts,
                    dataclasses.replace(dream, temperature=temperature),
                    config,
                    seed=seed,
                    checkpoint=stage.checkpoint / f"{temperature}-{seed}.pt",
                    on_update=child.log,
                )
                real = judge(training.controller).score_percent
                child.log(0, {"dream_score_percent": training.score_percent, "real_score_percent": real})
                scores[temperature].append((training.score_percent, real))
                keep_prices()
    return {
        "points": [_point(temperature, scores[temperature], sweep["seeds"]) for temperature in sweep["temperatures"]],
        "random_score_percent": mean_improvement_percent(rollouts.episodes),
        "random_episodes": len(rollouts.episodes),
    }


def _point(temperature: float, scores: list[tuple[float, float]], seeds: list[int]) -> dict[str, Any]:
    """The figures of one temperature, with intervals if there are several seeds; scores (dream, real) in percent."""
    dream, real = (estimate(list(world)) for world in zip(*scores, strict=True))
    point = {
        "temperature": temperature,
        "dream_score_percent": dream.value,
        "real_score_percent": real.value,
        "episodes": len(scores),
        "seeds": list(seeds),
    }
    if len(scores) == 1:
        return point
    return point | {"dream_score_percent_ci95": dream.ci95, "real_score_percent_ci95": real.ci95}


if __name__ == "__main__":
    temperature_sweep()
