"""Collect episodes in the real environment, for the world model to be fitted on.

Workers may play a share of the episodes each, which this stage then finds: `--multirun workers=2 worker=0,1`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from experiment.documents.collect_rollouts import CollectRollouts
from experiment.formulations.episodes import OnEpisode, timed_by
from experiment.formulations.rollouts import rollouts_of
from experiment.results import write_results
from experiment.stage_summaries import of_rollouts, write_summary
from tracking.factories import cost_model_of, each_priced_graph
from tracking.share import Share
from tracking.stage import Stage, shared_stage

from rlflow.cost.base import CostModel
from rlflow.cost.measured import MeasuredCost
from rlflow.errors import InputError


def play(stage: Stage, share: Share) -> None:
    """Play a worker's share of the episodes on each graph; the stage finds them among its checkpoints."""
    cost_model = cost_model_of(stage.settings["cost"])
    if isinstance(cost_model, MeasuredCost):
        raise InputError("no two workers measure the same prices: choose cost=predicted, or one worker")
    if timed_by(stage.settings) is not None:
        raise InputError("workers beside each other disturb what is timed: choose a computed reward, or one worker")
    stage.each_graph(partial(_play, cost_model=cost_model, share=share))


@shared_stage(play)
def collect_rollouts(stage: Stage) -> None:
    start = stage.input("data/prices/generate_rules.json")
    end = stage.output("data/prices/collect_rollouts.json")
    metrics = each_priced_graph(stage, start, end, _collect)
    write_results(stage.metrics, CollectRollouts, metrics)
    write_summary(stage.summary, of_rollouts(metrics))
    stage.report(metrics)


def _play(stage: Stage, cost_model: CostModel, share: Share) -> None:
    with _watched(stage) as on_episode:
        rollouts_of(stage.settings).play(stage, cost_model, on_episode, share)


def _collect(stage: Stage, cost_model: CostModel, keep_prices: Callable[[], None]) -> dict[str, Any]:
    """Write the rollouts of one graph; returns their figures."""
    with _watched(stage) as on_episode:
        figures = rollouts_of(stage.settings).write(stage, cost_model, on_episode)
    keep_prices()
    return figures | {"steps_per_s": figures["steps"] / figures["wall_time_s"], "seed": stage.seed}


@contextmanager
def _watched(stage: Stage) -> Iterator[OnEpisode]:
    """Yield what is to be told of each episode: its number, what it has saved, and the improvement at its end."""
    episodes = stage.settings["rollouts"]["episodes"]
    with stage.progress(f"{stage.graph}, episodes") as on_progress:

        def on_episode(number: int, return_percent: float, improvement_percent: float) -> None:
            stage.log(number, {"return": return_percent, "improvement_percent": improvement_percent})
            on_progress((number + 1) / episodes, f"{number + 1}, {improvement_percent:.1f} %")

        yield on_episode


if __name__ == "__main__":
    collect_rollouts()
