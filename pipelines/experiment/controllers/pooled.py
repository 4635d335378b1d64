"""The controller over (rule, location), trained in the dream of one vector."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tracking.factories import agent_rules, graph_of
from tracking.stage import Stage

from rlflow.agents.dream_training import DreamTraining
from rlflow.agents.policy_search import Visits, judge_on
from rlflow.agents.pooled.config import ControllerConfig
from rlflow.agents.pooled.controller import Controller
from rlflow.agents.pooled.dream_training import train_in_dream
from rlflow.agents.pooled.graph_level_search import GraphLevelSearch
from rlflow.agents.scores import mean_improvement_percent
from rlflow.agents.selection import Judge
from rlflow.cost.base import CostModel
from rlflow.environments import EnvironmentConfig
from rlflow.representation.rollouts import Rollouts
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.pooled.config import DreamConfig
from rlflow.world_model.pooled.dream_env import Starts, visited_states
from rlflow.world_model.pooled.model import WorldModel
from rlflow.world_model.settings import read_config

ORIGINAL_PERCENT = 100.0  # the price of the graph before any rewrite
DRAWN_VISITS = 2  # beside that of the most probable actions


@dataclass(frozen=True)
class PooledSchool:
    """All that it takes to train controllers for one graph, and to try them on it.

    visits: the ways that a controller takes there. random_percent: what a random agent saves, as the mean over the
    `random_episodes` that begin at the original.
    """

    model: WorldModel
    starts: Starts
    dream: DreamConfig
    config: ControllerConfig
    judge: Judge[Controller]
    visits: Callable[[Controller], Visits]
    random_percent: float
    random_episodes: int

    @classmethod
    def of(cls, stage: Stage, cost_model: CostModel) -> "PooledSchool":
        settings, rules = stage.settings, agent_rules(stage.input("data/rules"), stage.graph)
        model = WorldModel.load(stage.input(f"{stage.data}/world_models/{stage.graph}"))
        rollouts = Rollouts.load(stage.input(f"{stage.data}/rollouts/{stage.graph}"))

        def alone(controller: Controller) -> GraphLevelSearch:
            return dataclasses.replace(
                optimiser_of(stage, rules, cost_model, model, controller), sampled_episodes=0, candidates=1
            )

        whole = [episode for episode in rollouts.episodes if episode.cost[0] == ORIGINAL_PERCENT]
        graph = graph_of(settings["graph"])

        def visits(controller: Controller) -> Visits:
            return alone(controller).visits(graph, DRAWN_VISITS)

        return cls(
            model,
            visited_states(model, rollouts),
            read_config(DreamConfig, settings["controller"]["dream"]),
            read_config(ControllerConfig, settings["controller"]["ppo"]),
            judge_on(graph, alone),
            visits,
            mean_improvement_percent(whole),
            len(whole),
        )

    @property
    def rounds(self) -> int:
        """Updates of a training."""
        return -(-self.config.total_steps // (self.dream.num_envs * self.config.steps_per_update))

    @property
    def dream_steps(self) -> int:
        """Imagined steps of a training."""
        return self.rounds * self.dream.num_envs * self.config.steps_per_update

    def real_score_percent(self, controller: Controller) -> float:
        """The improvement by an episode on the real graph, as long as a dream: the real side of the dream's score."""
        return self.judge(controller).score_percent

    def shortened(self, share: float, temperature: float) -> "PooledSchool":
        """The same with a share of the training, in dreams of that temperature."""
        config = dataclasses.replace(self.config, total_steps=round(share * self.config.total_steps))
        return dataclasses.replace(self, config=config, dream=dataclasses.replace(self.dream, temperature=temperature))

    @property
    def train(self) -> Callable[..., DreamTraining[Controller]]:
        """`train_in_dream`, which another process can be given: only a judge, if there is one, takes real steps."""
        return partial(train_in_dream, self.model, self.starts, self.dream, self.config)


def policy_of(stage: Stage, cost_model: CostModel) -> GraphLevelSearch:
    """The trained controller of one graph as an optimiser, with the rules that were chosen for it."""
    model = WorldModel.load(stage.input(f"{stage.data}/world_models/{stage.graph}"))
    controller = Controller.load(stage.input(f"{stage.data}/policies/{stage.graph}"))
    rules = agent_rules(stage.input("data/rules"), stage.graph)
    return optimiser_of(stage, rules, cost_model, model, controller)


def optimiser_of(
    stage: Stage, rules: Library, cost_model: CostModel, model: WorldModel, controller: Controller
) -> GraphLevelSearch:
    """An optimiser with the settings of the stage's environment."""
    environment = EnvironmentConfig(**stage.settings["environment"])
    return GraphLevelSearch(rules, Rewriter(rules.rules), cost_model, model, controller, environment, seed=stage.seed)
