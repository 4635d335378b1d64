"""Rollouts of the graph level: a random agent goes first, by the rules that were chosen for the graph."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from tracking.factories import agent_rules, graph_of
from tracking.share import Share
from tracking.stage import Stage

from experiment.formulations.episodes import OnEpisode, improvements, ways_before
from rlflow.agents.collection import Collection, CollectionConfig, collect
from rlflow.cost.base import CostModel
from rlflow.environments import EnvironmentConfig, RewardConfig, SubstitutionEnv
from rlflow.errors import InputError
from rlflow.representation.rollouts import Episode
from rlflow.trajectory import record
from rlflow.trajectory.state_graph import Way, way_of


def write(stage: Stage, cost_model: CostModel, on_episode: OnEpisode) -> dict[str, Any]:
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

    earlier = Collection()
    if stage.before is not None:
        earlier = Collection.load(stage.input(f"{stage.before}/rollouts/{stage.graph}"), env)
    known = len(earlier.episodes), earlier.matches_beyond_limit
    collection = collect(
        env,
        CollectionConfig(**settings["rollouts"]),
        seed=stage.seed,
        before=earlier,
        trajectories=ways_before(stage),
        checkpoint=stage.checkpoint / "episodes",
        on_episode=told,
    )
    collection.save(stage.output(f"{stage.data}/rollouts/{stage.graph}"), env)
    return _figures(collection, *known, env) | env.reward.figures() | {"wall_time_s": stopwatch.tick()}


def play(stage: Stage, cost_model: CostModel, on_episode: OnEpisode, share: Share) -> None:
    raise InputError("workers share episodes over match tokens alone: choose world_model=match_level, or one worker")


def ways(stage: Stage) -> Iterable[Way]:
    return map(way_of, record.load(stage.input(f"data/rollouts/{stage.graph}") / "trajectories.jsonl"))


def _figures(collection: Collection, known: int, known_beyond: int, env: SubstitutionEnv) -> dict[str, Any]:
    """Return the figures of the new episodes; the first `known` are older, with `known_beyond` matches too many."""
    episodes = collection.episodes[known:]
    applied = {int(rule) for episode in episodes for rule in episode.action[:, 0]} - {env.actions.terminate}
    available = np.max([episode.counts.max(axis=0) for episode in episodes], axis=0) > 0
    return {
        "episodes": len(episodes),
        "steps": sum(episode.num_steps for episode in episodes),
        "distinct_graphs": len(collection.graphs),
        "terminated": sum(bool(episode.terminated[-1]) for episode in episodes),
        "truncated": sum(not episode.terminated[-1] for episode in episodes),
        "rules_available": int(available.sum()),
        "rules_applied": len(applied),
        "matches_beyond_limit": collection.matches_beyond_limit - known_beyond,
        **improvements(
            [float(episode.cost[0] - episode.cost[-1]) for episode in episodes],
            max(100.0 - float(episode.cost.min()) for episode in episodes),
        ),
    }
