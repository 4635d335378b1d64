"""The paper's Table 3: train at several temperatures of the dream, and score each policy there and in reality."""

import itertools
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

from controllers import pooled, tokens

from rlflow.cost.base import CostModel
from rlflow.evaluation import figures
from rlflow.evaluation.results import write_results
from rlflow.runtime.timing.statistics import estimate
from rlflow.tracking.factories import priced, save_prices
from rlflow.tracking.run import open_child
from rlflow.tracking.stage import Stage, pipeline_stage

SCHOOLS: dict[str, Any] = {"pooled": pooled.PooledSchool, "tokens": tokens.TokenSchool}


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
    sweep = stage.settings["sweep"]
    school = SCHOOLS[stage.settings["formulation"]].of(stage, cost_model)
    scores: dict[float, list[tuple[float, float]]] = defaultdict(list)
    jobs = list(itertools.product(sweep["temperatures"], sweep["seeds"]))
    with stage.progress(f"{stage.graph}, trainings") as on_progress:
        for number, (temperature, seed) in enumerate(jobs):
            on_progress(number / len(jobs), f"temperature {temperature}, seed {seed}")
            name = f"{stage.graph}/temperature={temperature}/seed={seed}"
            with open_child(stage.run, name, parameters={"temperature": temperature, "seed": seed}) as child:
                pupil = school.shortened(sweep["training_share"], temperature)
                training = pupil.train(
                    seed=seed, checkpoint=stage.checkpoint / f"{temperature}-{seed}.pt", on_round=child.log
                )
                real = school.real_score_percent(training.controller)
                child.log(0, {"dream_score_percent": training.score_percent, "real_score_percent": real})
                scores[temperature].append((training.score_percent, real))
                keep_prices()
    return {
        "points": [_point(temperature, scores[temperature], sweep["seeds"]) for temperature in sweep["temperatures"]],
        "random_score_percent": school.random_percent,
        "random_episodes": school.random_episodes,
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
