"""The controller over match tokens, trained by PPO or by evolution, in the dream of a graph or on the graph itself.

Agents act by all rules of the library.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracking.factories import graph_of
from tracking.stage import Stage

from experiment.formulations.controller_trainer import ControllerTrainer, alone
from experiment.formulations.match_level.pretrained import pretrained
from rlflow.agents.dream_training import Dream
from rlflow.agents.match_level.chain import FittedWorld
from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.guide import Guide
from rlflow.agents.match_level.guided_chains import ChainConfig, GuidedChains
from rlflow.agents.match_level.match_level_search import MatchLevelSearch
from rlflow.agents.match_level.model_free import RealGraph
from rlflow.agents.match_level.pointer_config import CmaEsConfig, MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.agents.match_level.real_env import real_return
from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.agents.selection import Trial
from rlflow.cost.base import CostModel
from rlflow.environments.rewards import RewardConfig, reward_of
from rlflow.processes.token_process import TokenProcess
from rlflow.representation import token_archive
from rlflow.rules import library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.settings import read_config
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig
from rlflow.world_model.match_level.model import MatchLevelModel

RANDOM_EPISODES = 4


def trainer(stage: Stage, cost_model: CostModel) -> ControllerTrainer:
    """A random agent is a controller that has learned nothing, is not greedy, and draws its actions."""
    settings, graph = stage.settings["controller"], graph_of(stage.settings["graph"])
    world = FittedWorld.load(stage.input(f"data/world_models/{stage.graph}"))
    config, rules, reward = _config(settings), _rules(stage), RewardConfig(**stage.settings["reward"])
    process = TokenProcess(graph, Rewriter(rules.rules), cost_model, world.model.arguments.vocabulary)
    earned = reward_of(reward)
    if "real" in settings:
        dream: Dream[MatchLevelController] = RealGraph(
            world.model, process, read_config(RealEpisodesConfig, settings["real"]), earned
        )
    else:
        rollouts = token_archive.load(stage.input(f"data/rollouts/{stage.graph}"))
        dream = world.dream(rollouts, read_config(MatchLevelDreamConfig, settings["dream"]), reward.of_step)

    search_of = _search_of(stage, cost_model, world.model, rules)
    random_percents = search_of(dream.untrained(_random(config), seed=stage.seed)).drawn(graph, RANDOM_EPISODES)

    def real_episode(controller: MatchLevelController) -> Trial:
        return real_return(process, world.model, controller, dream.config.max_steps, earned)

    known = pretrained(stage.settings)

    def save(controller: MatchLevelController, folder: Path) -> None:
        """Write a policy like the one that ships, which the product searches by."""
        before = known or TaughtGuide(world.model, ChainConfig())
        before.tuned(world.model, [stage.graph], controller=controller).save(folder)

    begin = None if known is None else known.controller
    return ControllerTrainer(dream, config, graph, alone(search_of), real_episode, random_percents, save, begin)


def policy(stage: Stage, cost_model: CostModel) -> MatchLevelSearch:
    learned = stage.input(f"data/policies/{stage.graph}")
    return _search_of(stage, cost_model, MatchLevelModel.load(learned), _rules(stage))(
        MatchLevelController.load(learned)
    )


def search(stage: Stage, cost_model: CostModel, options: Mapping[str, Any]) -> GuidedChains:
    """Return the search of `rlflow optimise --method rlflow` by the policy of this graph; the options are its own."""
    guide, rules = Guide.load(stage.input(f"data/policies/{stage.graph}")), _rules(stage)
    return guide.search(rules, Rewriter(rules.rules), cost_model, **options)


def _rules(stage: Stage) -> Library:
    return library.load(stage.input("data/rules/library.jsonl"))


def _search_of(
    stage: Stage, cost_model: CostModel, model: MatchLevelModel, rules: Library
) -> Callable[[MatchLevelController], MatchLevelSearch]:
    def search(controller: MatchLevelController) -> MatchLevelSearch:
        rewriter = Rewriter(rules.rules)
        return MatchLevelSearch(rules, rewriter, cost_model, model, controller, seed=stage.seed)

    return search


def _random(config: MatchLevelControllerConfig | CmaEsConfig) -> MatchLevelControllerConfig | CmaEsConfig:
    return config if isinstance(config, CmaEsConfig) else replace(config, greedy_weight=0.0, expert_weight=0.0)


def _config(settings: dict[str, Any]) -> MatchLevelControllerConfig | CmaEsConfig:
    """The settings of a training, by PPO or by evolution: the name of the part in section `controller` tells which."""
    if "cma_es" in settings:
        return read_config(CmaEsConfig, settings["cma_es"])
    return read_config(MatchLevelControllerConfig, settings["ppo"])
