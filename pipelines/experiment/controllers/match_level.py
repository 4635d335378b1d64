"""A controller over match tokens, trained in the dream of M by PPO or by evolution."""

import dataclasses
from typing import Any

import numpy as np
from rlflow.agents.match_level.dream_training import train_in_dream, untrained
from tracking.factories import graph_of
from tracking.stage import Stage

from experiment.controllers.trainer import DRAWN_VISITS, ControllerTrainer
from rlflow.agents.match_level.chain import FittedWorld
from rlflow.agents.match_level.controller import MatchLevelController, MatchLevelControllerArguments
from rlflow.agents.match_level.match_level_search import MatchLevelSearch
from rlflow.agents.match_level.pointer_config import CmaEsConfig, MatchLevelControllerConfig
from rlflow.agents.match_level.real_env import real_return
from rlflow.agents.policy_search import judge_on
from rlflow.cost.base import CostModel
from rlflow.environments.token_process import TokenProcess
from rlflow.representation import token_archive
from rlflow.rules import library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.settings import read_config

RANDOM_EPISODES = 4


def trainer_of(stage: Stage, cost_model: CostModel) -> ControllerTrainer:
    """Return what controllers of one graph are trained and tried with.

    A controller before its training that draws its actions is a random agent.
    """
    settings, graph = stage.settings["controller"], graph_of(stage.settings["graph"])
    world = FittedWorld.load(stage.input(f"{stage.data}/world_models/{stage.graph}"))
    rollouts = token_archive.load(stage.input(f"{stage.data}/rollouts/{stage.graph}"))
    dream = world.dream(rollouts, read_config(MatchLevelDreamConfig, settings["dream"]))
    config, rules = _config(settings), library.load(stage.input("data/rules/library.jsonl"))

    def alone(controller: MatchLevelController) -> MatchLevelSearch:
        optimiser = optimiser_of(stage, rules, cost_model, world.model, controller)
        return dataclasses.replace(optimiser, sampled_episodes=0, candidates=1)

    beginner = untrained(MatchLevelControllerArguments.of(world.model, config), seed=stage.seed)
    found = alone(beginner).drawn(graph, RANDOM_EPISODES)
    process = TokenProcess(graph, Rewriter(rules.rules), cost_model, world.model.arguments.vocabulary)
    return ControllerTrainer(
        dream=dream,
        config=config,
        train_in_dream=train_in_dream,
        judge=judge_on(graph, alone),
        visits=lambda controller: alone(controller).visits(graph, DRAWN_VISITS),
        real_score_percent=lambda controller: (
            real_return(process, world.model, controller, dream.config.max_steps).score_percent
        ),
        random_percent=float(np.mean(found)),
        random_episodes=RANDOM_EPISODES,
    )


def policy_of(stage: Stage, cost_model: CostModel) -> MatchLevelSearch:
    """The trained controller of one graph as an optimiser, with all rules of the library."""
    model = MatchLevelModel.load(stage.input(f"{stage.data}/world_models/{stage.graph}"))
    controller = MatchLevelController.load(stage.input(f"{stage.data}/policies/{stage.graph}"))
    rules = library.load(stage.input("data/rules/library.jsonl"))
    return optimiser_of(stage, rules, cost_model, model, controller)


def optimiser_of(
    stage: Stage, rules: Library, cost_model: CostModel, model: MatchLevelModel, controller: MatchLevelController
) -> MatchLevelSearch:
    """An optimiser whose episodes are as long as those of the stage's environment."""
    max_steps = stage.settings["environment"]["max_steps"]
    return MatchLevelSearch(rules, Rewriter(rules.rules), cost_model, model, controller, max_steps, seed=stage.seed)


def _config(settings: dict[str, Any]) -> MatchLevelControllerConfig | CmaEsConfig:
    """The settings of a training, by PPO or by evolution: the name of the part in section `controller` tells which."""
    if "cma_es" in settings:
        return read_config(CmaEsConfig, settings["cma_es"])
    return read_config(MatchLevelControllerConfig, settings["ppo"])
