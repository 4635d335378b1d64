"""The controller over (rule, location), trained in the dream of one vector."""

import dataclasses

from rlflow.agents.graph_level.dream_training import PooledDream, train_in_dream
from tracking.factories import agent_rules, graph_of
from tracking.stage import Stage

from experiment.controllers.trainer import DRAWN_VISITS, ControllerTrainer
from rlflow.agents.graph_level.controller import Controller
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.graph_level_search import GraphLevelSearch
from rlflow.agents.policy_search import judge_on
from rlflow.agents.scores import mean_improvement_percent
from rlflow.cost.base import CostModel
from rlflow.environments import EnvironmentConfig
from rlflow.representation.rollouts import Rollouts
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.settings import read_config

ORIGINAL_PERCENT = 100.0  # the price of the graph before any rewrite


def trainer_of(stage: Stage, cost_model: CostModel) -> ControllerTrainer:
    """Return what controllers of one graph are trained and tried with.

    The random agent is that of the rollouts, in the episodes that begin at the original.
    """
    settings, rules = stage.settings, agent_rules(stage.input("data/rules"), stage.graph)
    model = GraphLevelModel.load(stage.input(f"{stage.data}/world_models/{stage.graph}"))
    rollouts = Rollouts.load(stage.input(f"{stage.data}/rollouts/{stage.graph}"))
    graph = graph_of(settings["graph"])

    def alone(controller: Controller) -> GraphLevelSearch:
        return dataclasses.replace(
            optimiser_of(stage, rules, cost_model, model, controller), sampled_episodes=0, candidates=1
        )

    judge = judge_on(graph, alone)
    whole = [episode for episode in rollouts.episodes if episode.cost[0] == ORIGINAL_PERCENT]
    return ControllerTrainer(
        dream=PooledDream.of(model, rollouts, read_config(GraphLevelDreamConfig, settings["controller"]["dream"])),
        config=read_config(ControllerConfig, settings["controller"]["ppo"]),
        train_in_dream=train_in_dream,
        judge=judge,
        visits=lambda controller: alone(controller).visits(graph, DRAWN_VISITS),
        real_score_percent=lambda controller: judge(controller).score_percent,
        random_percent=mean_improvement_percent(whole),
        random_episodes=len(whole),
    )


def policy_of(stage: Stage, cost_model: CostModel) -> GraphLevelSearch:
    """The trained controller of one graph as an optimiser, with the rules that were chosen for it."""
    model = GraphLevelModel.load(stage.input(f"{stage.data}/world_models/{stage.graph}"))
    controller = Controller.load(stage.input(f"{stage.data}/policies/{stage.graph}"))
    rules = agent_rules(stage.input("data/rules"), stage.graph)
    return optimiser_of(stage, rules, cost_model, model, controller)


def optimiser_of(
    stage: Stage, rules: Library, cost_model: CostModel, model: GraphLevelModel, controller: Controller
) -> GraphLevelSearch:
    """An optimiser with the settings of the stage's environment."""
    environment = EnvironmentConfig(**stage.settings["environment"])
    return GraphLevelSearch(rules, Rewriter(rules.rules), cost_model, model, controller, environment, seed=stage.seed)
