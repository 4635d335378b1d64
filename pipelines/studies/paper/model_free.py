"""A model-free agent that learns on the graph itself, by any of the rewards of Figure 5.

The policy, its algorithm and what it sees are those of the agent that dreams; V, that of the policy that ships, reads
the tokens for it and costs it nothing. Snapshots are compared by the reward that the agent learns from.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.match_level_search import MatchLevelSearch
from rlflow.agents.match_level.model_free import train_and_try
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.agents.match_level.taught_guide import shipped
from rlflow.cost.base import CostModel
from rlflow.environments.rewards import RewardConfig, reward_of
from rlflow.method import Budget
from rlflow.processes.token_process import TokenProcess
from rlflow.rules import library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.match_level.model import MatchLevelModel
from studies.paper.rows import Row, method_row
from studies.subject import Subject


@dataclass(frozen=True)
class ModelFreeCell:
    """One training by a reward; `variant` is the name that it has in the tables."""

    subject: Subject
    variant: str
    seed: int
    reward: RewardConfig
    ppo: MatchLevelControllerConfig
    real: RealEpisodesConfig

    def run(self) -> dict[str, Row]:
        graph, prices, rules, world_model = self.subject.graph(), self.subject.prices(), library.load(), shipped().model
        rewriter, reward = Rewriter(rules.rules), reward_of(self.reward)
        process = TokenProcess(graph, rewriter, prices, world_model.arguments.vocabulary)
        training = train_and_try(process, world_model, self.ppo, self.real, seed=self.seed, reward=reward)
        policy = acting_alone(rules, rewriter, prices, world_model, training.controller, seed=self.seed)
        found = policy.optimise(graph, Budget())
        curves = {
            "return_percent": training.course("return_percent"),
            "trial_percent": [trial.score_percent for trial in training.trials],
        }
        taken = training.seconds, training.rewrites
        return {self.variant: method_row(graph, found, prices, rules, *taken, curves)}


def acting_alone(
    rules: Library,
    rewriter: Rewriter,
    prices: CostModel,
    world_model: MatchLevelModel,
    controller: MatchLevelController,
    *,
    seed: int,
) -> MatchLevelSearch:
    """The agent that takes the controller's most probable actions for one episode, and tries nothing else."""
    return MatchLevelSearch(
        rules, rewriter, prices, world_model, controller, sampled_episodes=0, candidates=1, seed=seed
    )
