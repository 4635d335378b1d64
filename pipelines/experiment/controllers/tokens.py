"""A controller over match tokens, trained in the dream of M by PPO or by evolution."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from tracking.factories import graph_of
from tracking.stage import Stage

from rlflow.agents.dream_training import DreamTraining
from rlflow.agents.policy_search import Visits, judge_on
from rlflow.agents.selection import Judge
from rlflow.agents.tokens.config import CmaEsConfig, TokenControllerConfig
from rlflow.agents.tokens.controller import TokenController, TokenControllerArguments
from rlflow.agents.tokens.dream_training import TokenDream, train_in_dream, untrained
from rlflow.agents.tokens.match_level_search import MatchLevelSearch
from rlflow.agents.tokens.real_env import real_return
from rlflow.cost.base import CostModel
from rlflow.environments.token_process import TokenProcess
from rlflow.representation import token_archive
from rlflow.rules import library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.settings import read_config
from rlflow.world_model.tokens.birth_memory import BirthMemory
from rlflow.world_model.tokens.config import TokenDreamConfig
from rlflow.world_model.tokens.model import TokenWorldModel

RANDOM_EPISODES = 4
DRAWN_VISITS = 2  # beside that of the most probable actions


@dataclass(frozen=True)
class TokenSchool:
    """All that it takes to train controllers for one graph, and to try them on it.

    visits: the ways that a controller takes there. process: the real one. random_percent: what a random agent saves,
    as the mean over `random_episodes`. A controller before its training that draws its actions is one.
    """

    dream: TokenDream
    config: TokenControllerConfig | CmaEsConfig
    judge: Judge[TokenController]
    visits: Callable[[TokenController], Visits]
    process: TokenProcess
    random_percent: float
    random_episodes: int = RANDOM_EPISODES

    @classmethod
    def of(cls, stage: Stage, cost_model: CostModel) -> "TokenSchool":
        settings = stage.settings["controller"]
        folder = stage.input(f"{stage.data}/world_models/{stage.graph}")
        model = TokenWorldModel.load(folder)
        rollouts = token_archive.load(stage.input(f"{stage.data}/rollouts/{stage.graph}"))
        dream = TokenDream.of(
            model, BirthMemory.load(folder), rollouts, read_config(TokenDreamConfig, settings["dream"])
        )
        config = _config(settings)
        rules = library.load(stage.input("data/rules/library.jsonl"))

        def alone(controller: TokenController) -> MatchLevelSearch:
            optimiser = optimiser_of(stage, rules, cost_model, model, controller)
            return dataclasses.replace(optimiser, sampled_episodes=0, candidates=1)

        graph = graph_of(stage.settings["graph"])

        def visits(controller: TokenController) -> Visits:
            return alone(controller).visits(graph, DRAWN_VISITS)

        beginner = untrained(TokenControllerArguments.of(model, config), seed=stage.seed)
        found = alone(beginner).drawn(graph, RANDOM_EPISODES)
        process = TokenProcess(graph, Rewriter(rules.rules), cost_model, model.arguments.vocabulary)
        return cls(dream, config, judge_on(graph, alone), visits, process, float(np.mean(found)))

    @property
    def rounds(self) -> int:
        """Updates of PPO, or generations, of a training."""
        if isinstance(self.config, CmaEsConfig):
            return self.config.generations
        return -(-self.config.total_steps // (self.dream.config.num_envs * self.config.steps_per_update))

    @property
    def dream_steps(self) -> int:
        """Imagined steps of a training, at most: an evolution's episodes may end early."""
        config, dream = self.config, self.dream.config
        if isinstance(config, CmaEsConfig):
            return self.rounds * config.population * dream.num_envs * dream.max_steps
        return self.rounds * dream.num_envs * config.steps_per_update

    def real_score_percent(self, controller: TokenController) -> float:
        """The return of an episode on the real graph, as long as a dream: the real side of the dream's score."""
        return real_return(self.process, self.dream.model, controller, self.dream.config.max_steps).score_percent

    def shortened(self, share: float, temperature: float) -> "TokenSchool":
        """The same with a share of the training, in dreams of that temperature."""
        config = self.config
        if isinstance(config, CmaEsConfig):
            shorter: Any = dataclasses.replace(config, generations=max(1, round(share * config.generations)))
        else:
            shorter = dataclasses.replace(config, total_steps=round(share * config.total_steps))
        settings = dataclasses.replace(self.dream.config, temperature=temperature)
        return dataclasses.replace(self, config=shorter, dream=dataclasses.replace(self.dream, config=settings))

    @property
    def train(self) -> Callable[..., DreamTraining[TokenController]]:
        """`train_in_dream`, which another process can be given: only a judge, if there is one, takes real steps."""
        return partial(train_in_dream, self.dream, self.config)


def policy_of(stage: Stage, cost_model: CostModel) -> MatchLevelSearch:
    """The trained controller of one graph as an optimiser, with all rules of the library."""
    model = TokenWorldModel.load(stage.input(f"{stage.data}/world_models/{stage.graph}"))
    controller = TokenController.load(stage.input(f"{stage.data}/policies/{stage.graph}"))
    rules = library.load(stage.input("data/rules/library.jsonl"))
    return optimiser_of(stage, rules, cost_model, model, controller)


def optimiser_of(
    stage: Stage, rules: Library, cost_model: CostModel, model: TokenWorldModel, controller: TokenController
) -> MatchLevelSearch:
    """An optimiser whose episodes are as long as those of the stage's environment."""
    max_steps = stage.settings["environment"]["max_steps"]
    return MatchLevelSearch(rules, Rewriter(rules.rules), cost_model, model, controller, max_steps, seed=stage.seed)


def _config(settings: dict[str, Any]) -> TokenControllerConfig | CmaEsConfig:
    """The settings of a training, by PPO or by evolution: the name of the part in section `controller` tells which."""
    if "cma_es" in settings:
        return read_config(CmaEsConfig, settings["cma_es"])
    return read_config(TokenControllerConfig, settings["ppo"])
