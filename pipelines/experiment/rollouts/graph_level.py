"""Episodes of a random agent that chooses a rule and a location."""

from collections.abc import Callable
from typing import Any

import numpy as np
from tracking.factories import agent_rules, graph_of
from tracking.stage import Stage

from rlflow.agents.collection import Collection, CollectionConfig, collect
from rlflow.cost.base import CostModel
from rlflow.environments import EnvironmentConfig, RewardConfig, SubstitutionEnv
from rlflow.representation.rollouts import Episode
from rlflow.schemas.figures import Figure
from rlflow.trajectory import record
from rlflow.trajectory.record import Trajectory


def write_rollouts(
    stage: Stage, cost_model: CostModel, on_episode: Callable[[int, float, float], None]
) -> dict[str, Any]:
    """Write the rollouts of one graph, with those of the round before; returns the figures of the new ones.

    on_episode: called with the number, the return and the improvement at the end, in percent, of each.
    """
    settings, stopwatch = stage.settings, stage.stopwatch
    env = SubstitutionEnv(
        graph_of(settings["graph"]),
        agent_rules(stage.input("data/rules"), stage.graph),
        cost_model,
        config=EnvironmentConfig(**settings["environment"]),
        reward_config=RewardConfig(**settings["reward"]),
    )

    def told(number: int, episode: Episode) -> None:
        stopwatch.tick()
        on_episode(number, float(episode.reward.sum()), 100.0 - float(episode.cost[-1]))

    config = CollectionConfig(**settings["rollouts"])
    earlier, trajectories = _before(stage, env)
    known = len(earlier.episodes), earlier.matches_beyond_limit
    shards = stage.checkpoint / "episodes"
    collection = collect(
        env, config, seed=stage.seed, before=earlier, trajectories=trajectories, checkpoint=shards, on_episode=told
    )
    collection.save(stage.output(f"{stage.data}/rollouts/{stage.graph}"), env)
    return _figures(collection, *known, env) | env.reward.figures() | {"wall_time_s": stopwatch.tick()}


def _before(stage: Stage, env: SubstitutionEnv) -> tuple[Collection, list[Trajectory]]:
    """Return the episodes of the round before and the trajectories of its policy; nothing in the first round."""
    if stage.before is None:
        return Collection(), []
    folder = stage.before
    earlier = Collection.load(stage.input(f"{folder}/rollouts/{stage.graph}"), env)
    return earlier, record.load(stage.input(f"{folder}/policies/{stage.graph}/ways.jsonl"))


def _figures(collection: Collection, known: int, known_beyond: int, env: SubstitutionEnv) -> dict[str, Any]:
    """Return the figures of the new episodes; the first `known` are older, with `known_beyond` matches too many."""
    episodes = collection.episodes[known:]
    applied = {int(rule) for episode in episodes for rule in episode.action[:, 0]} - {env.actions.terminate}
    available = np.max([episode.counts.max(axis=0) for episode in episodes], axis=0) > 0
    final = [float(episode.cost[0] - episode.cost[-1]) for episode in episodes]
    best = max(100.0 - float(episode.cost.min()) for episode in episodes)
    return {
        "episodes": len(episodes),
        "steps": sum(episode.num_steps for episode in episodes),
        "distinct_graphs": len(collection.graphs),
        "terminated": sum(bool(episode.terminated[-1]) for episode in episodes),
        "truncated": sum(not episode.terminated[-1] for episode in episodes),
        "rules_available": int(available.sum()),
        "rules_applied": len(applied),
        "matches_beyond_limit": collection.matches_beyond_limit - known_beyond,
        "mean_improvement_percent": Figure(float(np.mean(final)), 0.0, "do_nothing", len(final)).to_json(),
        "best_improvement_percent": Figure(best, 0.0, "do_nothing", len(final)).to_json(),
    }
