"""Collect episodes of a random agent in the real environment, for the world model to be fitted on."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rlflow.agents.collection import Collection, CollectionConfig, collect
from rlflow.cost.base import CostModel
from rlflow.environments import EnvironmentConfig, RewardConfig, SubstitutionEnv
from rlflow.evaluation.results import Figure, write_results
from rlflow.representation.rollouts import Episode
from rlflow.tracking.factories import agent_rules, graph_of, priced, save_prices
from rlflow.tracking.stage import Stage, pipeline_stage


@pipeline_stage
def collect_rollouts(stage: Stage) -> None:
    cost_model, keep_prices = priced(stage, stage.input("data/prices/generate_rules.json"))
    metrics = stage.each_graph(partial(_collect, cost_model=cost_model, keep_prices=keep_prices))
    save_prices(cost_model, stage.output("data/prices/collect_rollouts.json"))
    write_results(stage.metrics, metrics)
    stage.report(metrics)


def _collect(stage: Stage, cost_model: CostModel, keep_prices: Callable[[], None]) -> dict[str, Any]:
    """Write the rollouts of one graph; returns their figures."""
    settings = stage.settings
    env = SubstitutionEnv(
        graph_of(settings["graph"]),
        agent_rules(stage.input("data/rules"), stage.graph),
        cost_model,
        config=EnvironmentConfig(**settings["environment"]),
        reward_config=RewardConfig(**settings["reward"]),
    )

    config = CollectionConfig(**settings["rollouts"])
    stopwatch = stage.stopwatch
    with stage.progress(f"{stage.graph}, episodes") as on_progress:

        def on_episode(number: int, episode: Episode) -> None:
            stopwatch.tick()
            improvement = 100.0 - float(episode.cost[-1])
            stage.log(number, {"return": float(episode.reward.sum()), "improvement_percent": improvement})
            on_progress((number + 1) / config.episodes, f"{number + 1}, {improvement:.1f} %")

        collection = collect(env, config, seed=stage.seed, checkpoint=stage.checkpoint, on_episode=on_episode)
    wall_time_s = stopwatch.tick()
    keep_prices()
    collection.save(stage.output(f"data/rollouts/{stage.graph}"), env)
    return _figures(collection, env) | {
        "steps_per_s": sum(episode.num_steps for episode in collection.episodes) / wall_time_s,
        "wall_time_s": wall_time_s,
        "seed": stage.seed,
    }


def _figures(collection: Collection, env: SubstitutionEnv) -> dict[str, Any]:
    episodes = collection.episodes
    applied = {int(rule) for episode in episodes for rule in episode.action[:, 0]} - {env.actions.terminate}
    available = np.max([episode.counts.max(axis=0) for episode in episodes], axis=0) > 0
    final = [100.0 - float(episode.cost[-1]) for episode in episodes]
    best = max(100.0 - float(episode.cost.min()) for episode in episodes)
    return {
        "episodes": len(episodes),
        "steps": sum(episode.num_steps for episode in episodes),
        "distinct_graphs": len(collection.graphs),
        "terminated": sum(bool(episode.terminated[-1]) for episode in episodes),
        "truncated": sum(not episode.terminated[-1] for episode in episodes),
        "rules_available": int(available.sum()),
        "rules_applied": len(applied),
        "matches_beyond_limit": collection.matches_beyond_limit,
        "mean_improvement_percent": Figure(float(np.mean(final)), 0.0, "do_nothing", len(final)).to_json(),
        "best_improvement_percent": Figure(best, 0.0, "do_nothing", len(final)).to_json(),
    }


if __name__ == "__main__":
    collect_rollouts()
