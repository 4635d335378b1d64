"""The paper's formulation: a graph is one vector, an action is a rule and a location, a random agent goes first."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from tracking.factories import agent_rules, graph_of
from tracking.stage import Stage

from experiment.formulations import graph_level_trust
from experiment.formulations.controller_trainer import ControllerTrainer
from experiment.formulations.formulation import Formulation, OnEpisode, alone, improvements, ways_before
from rlflow.agents.collection import Collection, CollectionConfig, collect
from rlflow.agents.graph_level.controller import Controller
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.dream import GraphLevelDream
from rlflow.agents.graph_level.graph_level_search import GraphLevelSearch
from rlflow.agents.policy_search import judge_on
from rlflow.cost.base import CostModel
from rlflow.environments import EnvironmentConfig, RewardConfig, SubstitutionEnv
from rlflow.representation.rollouts import Episode, Rollouts
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.epochs import OnEpoch
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig, GraphLevelModelConfig
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.graph_level.trainer import fit_world_model
from rlflow.world_model.settings import read_config

ORIGINAL_PERCENT = 100.0  # the price of the graph before any rewrite
CURVES = {"encoder/loss": "loss of V"} | {
    f"{split}/{part}": "nats" if part != "loss" else "loss of M"
    for part in ("loss", "latent", "reward", "terminated", "counts", "cost")
    for split in ("memory", "held_out")
}


class GraphLevel(Formulation):
    """Agents act by the rules that were chosen for the graph."""

    model_config = GraphLevelModelConfig
    curves: ClassVar = CURVES
    drawn: ClassVar = [name for name in CURVES if name.endswith("/loss")]

    def write_rollouts(self, stage: Stage, cost_model: CostModel, on_episode: OnEpisode) -> dict[str, Any]:
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

    def rollouts(self, stage: Stage) -> Rollouts:
        return Rollouts.load(stage.input(f"{stage.data}/rollouts/{stage.graph}"))

    def fit(
        self, stage: Stage, rollouts: Rollouts, config: GraphLevelModelConfig, on_epoch: OnEpoch
    ) -> GraphLevelModel:
        checkpoint = stage.checkpoint / "fit.pt"
        model = fit_world_model(rollouts, config, seed=stage.seed, checkpoint=checkpoint, on_epoch=on_epoch)
        model.save(stage.output(f"{stage.data}/world_models/{stage.graph}"))
        return model

    def trust(
        self,
        stage: Stage,
        model: GraphLevelModel,
        rollouts: Rollouts,
        training: Sequence[Episode],
        held_out: Sequence[Episode],
    ) -> dict[str, Any]:
        return graph_level_trust.figures(stage, model, rollouts, held_out)

    def trainer(self, stage: Stage, cost_model: CostModel) -> ControllerTrainer:
        """The random agent is that of the rollouts, in the episodes that begin at the original.

        Each saves what the best graph does that it met, which is what it would deliver.
        """
        settings, graph = stage.settings["controller"], graph_of(stage.settings["graph"])
        model, rollouts = _model(stage), self.rollouts(stage)
        player = alone(_search_of(stage, cost_model, model))
        whole = [episode for episode in rollouts.episodes if episode.cost[0] == ORIGINAL_PERCENT]
        return ControllerTrainer(
            dream=GraphLevelDream.of(model, rollouts, read_config(GraphLevelDreamConfig, settings["dream"])),
            config=read_config(ControllerConfig, settings["ppo"]),
            graph=graph,
            player=player,
            real_episode=judge_on(graph, player),
            random_percents=[100.0 - episode.cost.min() for episode in whole],
        )

    def policy(self, stage: Stage, cost_model: CostModel) -> GraphLevelSearch:
        controller = Controller.load(stage.input(f"{stage.data}/policies/{stage.graph}"))
        return _search_of(stage, cost_model, _model(stage))(controller)


def _model(stage: Stage) -> GraphLevelModel:
    return GraphLevelModel.load(stage.input(f"{stage.data}/world_models/{stage.graph}"))


def _search_of(stage: Stage, cost_model: CostModel, model: GraphLevelModel) -> Callable[[Controller], GraphLevelSearch]:
    """Searches have the settings of the stage's environment."""
    rules = agent_rules(stage.input("data/rules"), stage.graph)
    environment = EnvironmentConfig(**stage.settings["environment"])

    def search(controller: Controller) -> GraphLevelSearch:
        rewriter = Rewriter(rules.rules)
        return GraphLevelSearch(rules, rewriter, cost_model, model, controller, environment, seed=stage.seed)

    return search


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
