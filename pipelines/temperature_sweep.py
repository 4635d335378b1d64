"""The paper's Table 3: train at several temperatures of the dream, and score each policy there and in reality."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiment import figures, plot_rows
from experiment.documents.temperature_sweep import TemperatureSweep
from experiment.formulations.controllers import controller_of
from experiment.results import write_results
from experiment.stage_summaries import of_sweep, write_summary
from tracking.factories import priced, save_prices
from tracking.processes import mapping
from tracking.run import open_child
from tracking.stage import Stage, pipeline_stage

from rlflow.cost.base import CostModel
from rlflow.runtime.timing.statistics import estimate
from rlflow.show.picture_file import save

if TYPE_CHECKING:
    from rlflow.agents.dream_training import DreamTraining

RESULTS = "data/results/temperature_sweep"


@pipeline_stage
def temperature_sweep(stage: Stage) -> None:
    cost_model, keep_prices = priced(stage, stage.input("data/prices/collect_rollouts.json"))
    with mapping(stage.processes) as at_once:
        metrics = stage.each_graph(partial(_sweep, cost_model=cost_model, keep_prices=keep_prices, at_once=at_once))
    save_prices(cost_model, stage.output("data/prices/temperature_sweep.json"))
    write_results(stage.metrics, TemperatureSweep, metrics)
    write_summary(stage.summary, of_sweep(metrics))
    plot_rows.write_rows(stage.output(f"{RESULTS}/scores.csv"), plot_rows.scores_by_temperature(metrics))
    picture = stage.output(f"{RESULTS}/temperature_sweep.png")
    save(figures.temperature_sweep(metrics), picture)
    stage.report({graph: {str(p["temperature"]): p for p in sweep["points"]} for graph, sweep in metrics.items()})


def _sweep(
    stage: Stage,
    cost_model: CostModel,
    keep_prices: Callable[[], None],
    at_once: Callable[..., Iterator[tuple[DreamTraining[Any], list[tuple[int, dict[str, float]]]]]],
) -> dict[str, Any]:
    """The scores of all temperatures on one graph: of trainings, several at once, and of real episodes here."""
    sweep = stage.settings["sweep"]
    with stage.progress(f"{stage.graph}, random episodes") as on_progress:
        on_progress(0.0, "on the graph")
        # Begun afresh: a part of a training hardly leaves the policy that ships, whatever the temperature.
        trainer = replace(controller_of(stage.settings).trainer(stage, cost_model), begin=None)
    jobs = list(itertools.product(sweep["temperatures"], sweep["seeds"]))
    trainings = at_once(
        _trained,
        [trainer.shortened(sweep["training_share"], temperature).train for temperature, _ in jobs],
        [seed for _, seed in jobs],
        [stage.checkpoint / f"{temperature}-{seed}.pt" for temperature, seed in jobs],
    )
    scores: dict[float, list[tuple[float, float]]] = defaultdict(list)
    with stage.progress(f"{stage.graph}, trainings") as on_progress:
        for number, ((temperature, seed), (training, course)) in enumerate(zip(jobs, trainings, strict=True), start=1):
            name = f"{stage.graph}/temperature={temperature}/seed={seed}"
            with open_child(stage.run, name, parameters={"temperature": temperature, "seed": seed}) as child:
                for number_of_round, metrics in course:
                    child.log(number_of_round, metrics)
                real = trainer.real_episode(training.controller).score_percent
                child.log(0, {"dream_score_percent": training.score_percent, "real_score_percent": real})
            scores[temperature].append((training.score_percent, real))
            keep_prices()
            on_progress(number / len(jobs), f"temperature {temperature}, seed {seed}")
    return {
        "points": [_point(temperature, scores[temperature], sweep["seeds"]) for temperature in sweep["temperatures"]],
        "random_score_percent": trainer.random_percent,
        "random_episodes": len(trainer.random_percents),
    }


def _trained(
    train: Callable[..., DreamTraining[Any]], seed: int, checkpoint: Path
) -> tuple[DreamTraining[Any], list[tuple[int, dict[str, float]]]]:
    """Train one controller; returns the training, and its figures round by round."""
    course: list[tuple[int, dict[str, float]]] = []
    training = train(seed=seed, checkpoint=checkpoint, on_round=lambda *round_: course.append(round_), judge=None)
    return training, course


def _point(temperature: float, scores: list[tuple[float, float]], seeds: list[int]) -> dict[str, Any]:
    """The figures of one temperature, with intervals if there are several seeds; scores (dream, real) in percent."""
    dream, real = (estimate(list(world)) for world in zip(*scores, strict=True))
    point = {
        "temperature": temperature,
        "dream_score_percent": dream.value,
        "real_score_percent": real.value,
        "episodes": len(scores),
        "seeds": list(seeds),
        "dream_score_percents": [dreamed for dreamed, _ in scores],
        "real_score_percents": [scored for _, scored in scores],
    }
    if len(scores) == 1:
        return point
    return point | {"dream_score_percent_ci95": dream.ci95, "real_score_percent_ci95": real.ci95}


if __name__ == "__main__":
    temperature_sweep()
