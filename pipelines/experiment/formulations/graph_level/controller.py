"""The controller over rules and locations: agents act by the rules that were chosen for the graph."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tracking.factories import agent_rules, graph_of
from tracking.stage import Stage

from experiment.formulations.controller_trainer import ControllerTrainer, alone
from rlflow.agents.graph_level.controller import Controller
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.dream import GraphLevelDream
from rlflow.agents.graph_level.graph_level_search import GraphLevelSearch
from rlflow.agents.scores import episode_return
from rlflow.agents.selection import Trial
from rlflow.cost.base import CostModel
from rlflow.environments import EnvironmentConfig
from rlflow.environments.rewards import RewardConfig, reward_of
from rlflow.representation.rollouts import Rollouts
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.settings import read_config
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.model import GraphLevelModel

ORIGINAL_PERCENT = 100.0  # the price of the graph before any rewrite


def trainer(stage: Stage, cost_model: CostModel) -> ControllerTrainer:
    """The random agent is that of the rollouts, in the episodes that begin at the original.

    Each saves what the best graph does that it met, which is what it would deliver.
    """
    settings, graph = stage.settings["controller"], graph_of(stage.settings["graph"])
    model, rollouts = _model(stage), Rollouts.load(stage.input(f"data/rollouts/{stage.graph}"))
    config, search_of = read_config(GraphLevelDreamConfig, settings["dream"]), _search_of(stage, cost_model, model)
    reward = RewardConfig(**stage.settings["reward"])
    earned = reward_of(reward)

    def real_episode(controller: Controller) -> Trial:
        process = search_of(controller).process_on(graph)
        return episode_return(process, controller, config.max_steps, earned)

    whole = [episode for episode in rollouts.episodes if episode.cost[0] == ORIGINAL_PERCENT]
    return ControllerTrainer(
        dream=GraphLevelDream.of(model, rollouts, config, reward.of_step),
        config=read_config(ControllerConfig, settings["ppo"]),
        graph=graph,
        player=alone(search_of),
        real_episode=real_episode,
        random_percents=[100.0 - episode.cost.min() for episode in whole],
        save=Controller.save,
    )


def policy(stage: Stage, cost_model: CostModel) -> GraphLevelSearch:
    controller = Controller.load(stage.input(f"data/policies/{stage.graph}"))
    return _search_of(stage, cost_model, _model(stage))(controller)


def search(stage: Stage, cost_model: CostModel, options: Mapping[str, Any]) -> GraphLevelSearch:
    """Return the policy's episodes after greedy search; the options are those of `PolicySearch`."""
    return replace(policy(stage, cost_model), **options).after_greedy()


def _model(stage: Stage) -> GraphLevelModel:
    return GraphLevelModel.load(stage.input(f"data/world_models/{stage.graph}"))


def _search_of(stage: Stage, cost_model: CostModel, model: GraphLevelModel) -> Callable[[Controller], GraphLevelSearch]:
    """Searches have the settings of the stage's environment."""
    rules = agent_rules(stage.input("data/rules"), stage.graph)
    environment = EnvironmentConfig(**stage.settings["environment"])

    def search(controller: Controller) -> GraphLevelSearch:
        rewriter = Rewriter(rules.rules)
        return GraphLevelSearch(rules, rewriter, cost_model, model, controller, environment, seed=stage.seed)

    return search
