"""Collect episodes in the real environment, for the world model to be fitted on."""

from collections.abc import Callable
from functools import partial
from typing import Any

from rollouts import pooled, tokens

from rlflow.cost.base import CostModel
from rlflow.evaluation.results import write_results
from rlflow.tracking.factories import priced, save_prices
from rlflow.tracking.stage import Stage, pipeline_stage

WRITE_ROLLOUTS = {"pooled": pooled.write_rollouts, "tokens": tokens.write_rollouts}


@pipeline_stage
def collect_rollouts(stage: Stage) -> None:
    cost_model, keep_prices = priced(stage, stage.input("data/prices/generate_rules.json"))
    metrics = stage.each_graph(partial(_collect, cost_model=cost_model, keep_prices=keep_prices))
    save_prices(cost_model, stage.output("data/prices/collect_rollouts.json"))
    write_results(stage.metrics, metrics)
    stage.report(metrics)


def _collect(stage: Stage, cost_model: CostModel, keep_prices: Callable[[], None]) -> dict[str, Any]:
    """Write the rollouts of one graph; returns their figures."""
    episodes, stopwatch = stage.settings["rollouts"]["episodes"], stage.stopwatch
    with stage.progress(f"{stage.graph}, episodes") as on_progress:

        def on_episode(number: int, return_percent: float, improvement_percent: float) -> None:
            stopwatch.tick()
            stage.log(number, {"return": return_percent, "improvement_percent": improvement_percent})
            on_progress((number + 1) / episodes, f"{number + 1}, {improvement_percent:.1f} %")

        figures = WRITE_ROLLOUTS[stage.settings["formulation"]](stage, cost_model, on_episode)
    wall_time_s = stopwatch.tick()
    keep_prices()
    return figures | {"steps_per_s": figures["steps"] / wall_time_s, "wall_time_s": wall_time_s, "seed": stage.seed}


if __name__ == "__main__":
    collect_rollouts()
