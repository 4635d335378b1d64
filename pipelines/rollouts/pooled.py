"""Episodes of a random agent that chooses a rule and a location."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rlflow.agents.collection import Collection, CollectionConfig, collect
from rlflow.cost.base import CostModel
from rlflow.environments import EnvironmentConfig, RewardConfig, SubstitutionEnv
from rlflow.evaluation.results import Figure
from rlflow.representation.rollouts import Episode
from rlflow.tracking.factories import agent_rules, graph_of
from rlflow.tracking.stage import Stage


def write_rollouts(
    stage: Stage, cost_model: CostModel, on_episode: Callable[[int, float, float], None]
) -> dict[str, Any]:
    """Write the rollouts of one graph; returns their figures.

    on_episode: called with the number, the return and the improvement at the end, in percent, of each.
    """
    settings = stage.settings
    env = SubstitutionEnv(
        graph_of(settings["graph"]),
        agent_rules(stage.input("data/rules"), stage.graph),
        cost_model,
        config=EnvironmentConfig(**settings["environment"]),
        reward_config=RewardConfig(**settings["reward"]),
    )

    def told(number: int, episode: Episode) -> None:
        stage.stopwatch.tick()
        on_episode(number, float(episode.reward.sum()), 100.0 - float(episode.cost[-1]))

    config = CollectionConfig(**settings["rollouts"])
    collection = collect(env, config, seed=stage.seed, checkpoint=stage.checkpoint, on_episode=told)
    collection.save(stage.output(f"data/rollouts/{stage.graph}"), env)
    return _figures(collection, env) | {"wall_time_s": stage.stopwatch.tick()}


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
