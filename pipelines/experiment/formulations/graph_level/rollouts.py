"""Rollouts of the graph level: a random agent goes first, by the rules that were chosen for the graph."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from tracking.factories import agent_rules, graph_of
from tracking.share import Share
from tracking.stage import Stage

from experiment.formulations.episodes import OnEpisode, improvements, timed_by
from rlflow.agents.collection import Collection, CollectionConfig, collect
from rlflow.cost.base import CostModel
from rlflow.environments import EnvironmentConfig, SubstitutionEnv
from rlflow.errors import InputError
from rlflow.representation.rollouts import Episode
from rlflow.trajectory import record
from rlflow.trajectory.state_graph import Way, way_of


def write(stage: Stage, cost_model: CostModel, on_episode: OnEpisode) -> dict[str, Any]:
    settings, stopwatch = stage.settings, stage.stopwatch
    if settings["pretrained"] is not None:
        raise InputError("nothing that ships reads whole graphs: choose pretrained=null with world_model=graph_level")
    env = SubstitutionEnv(
        graph_of(settings["graph"]),
        agent_rules(stage.input("data/rules"), stage.graph),
        cost_model,
        config=EnvironmentConfig(**settings["environment"]),
    )
    timed = timed_by(settings)

    def told(number: int, episode: Episode) -> None:
        stopwatch.tick()
        on_episode(number, float(episode.reward.sum()), 100.0 - float(episode.cost[-1]))

    collection = collect(
        env,
        CollectionConfig(**settings["rollouts"]),
        seed=stage.seed,
        timed=timed,
        checkpoint=stage.checkpoint / "episodes",
        on_episode=told,
    )
    collection.save(stage.output(f"data/rollouts/{stage.graph}"), env)
    measured = {} if timed is None else timed.figures()
    return _figures(collection, env) | measured | {"wall_time_s": stopwatch.tick()}


def play(stage: Stage, cost_model: CostModel, on_episode: OnEpisode, share: Share) -> None:
    raise InputError("workers share episodes over match tokens alone: choose world_model=match_level, or one worker")


def ways(stage: Stage) -> Iterable[Way]:
    return map(way_of, record.load(stage.input(f"data/rollouts/{stage.graph}") / "trajectories.jsonl"))


def _figures(collection: Collection, env: SubstitutionEnv) -> dict[str, Any]:
    episodes = collection.episodes
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
        "matches_beyond_limit": collection.matches_beyond_limit,
        **improvements(
            [float(episode.cost[0] - episode.cost[-1]) for episode in episodes],
            max(100.0 - float(episode.cost.min()) for episode in episodes),
        ),
    }
