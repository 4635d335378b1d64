"""Train a controller in the dream of one vector, and score it there.

model = fit_world_model(rollouts, GraphLevelModelConfig(), seed=0)
training = train_in_dream(PooledDream.of(model, rollouts, GraphLevelDreamConfig()), ControllerConfig(), seed=0)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from rlflow.agents.dream_training import DreamTraining, train_and_score, untrained_network
from rlflow.agents.graph_level.controller import Controller, ControllerArguments
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.factored_policy import FactoredPolicy
from rlflow.agents.maskable_ppo import OnUpdate, train_policy
from rlflow.agents.scores import mean_return
from rlflow.agents.selection import Judge, Selection
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.dream_env import GraphLevelDreamEnv, Starts, visited_states
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.model import GraphLevelModel


@dataclass(frozen=True)
class PooledDream:
    """A fitted world model, and the states in which dreams of it begin."""

    model: GraphLevelModel
    starts: Starts
    config: GraphLevelDreamConfig

    @classmethod
    def of(cls, model: GraphLevelModel, rollouts: Rollouts, config: GraphLevelDreamConfig) -> PooledDream:
        """Return the dream that begins in the states of rollouts."""
        return cls(model, visited_states(model, rollouts), config)

    def at(self, temperature: float) -> PooledDream:
        """Return the same dream at another temperature."""
        return replace(self, config=replace(self.config, temperature=temperature))

    def from_start(self) -> PooledDream:
        """Return the same dream, where all begin where real episodes do."""
        return replace(self, config=replace(self.config, initial_fraction=1.0))

    def env(self, *, seed: int) -> GraphLevelDreamEnv:
        """Return the dream as a batch of environments."""
        return GraphLevelDreamEnv(self.model, self.starts, self.config, seed=seed)


def train_in_dream(
    dream: PooledDream,
    config: ControllerConfig,
    *,
    seed: int,
    checkpoint: Path | None = None,
    on_round: OnUpdate | None = None,
    judge: Judge[Controller] | None = None,
) -> DreamTraining[Controller]:
    """Train by MaskablePPO; only the judge, if there is one, takes real steps."""
    arguments = ControllerArguments.of(dream.model, config)
    env = dream.env(seed=seed)

    def train(selection: Selection[FactoredPolicy] | None) -> FactoredPolicy:
        return train_policy(
            env,
            FactoredPolicy,
            arguments.policy_settings(),
            config,
            seed=seed,
            fingerprint=env.fingerprint,
            on_update=on_round,
            checkpoint=checkpoint,
            selection=selection,
        )

    return train_and_score(
        train,
        lambda policy: Controller(policy, arguments),
        untrained(arguments, seed=seed),
        lambda controller: dream_score(dream, controller, seed=seed),
        judge,
    )


def dream_score(dream: PooledDream, controller: Controller, *, seed: int) -> float:
    """Mean return, in percent, of one episode in each of the batch's dreams.

    The dreams start where real episodes start, and the controller takes its most probable actions.
    """
    return mean_return(dream.from_start().env(seed=seed), controller.act)


def untrained(arguments: ControllerArguments, *, seed: int) -> Controller:
    """The same network before training: the baseline of a score."""
    return Controller(untrained_network(arguments.new_policy, seed=seed), arguments)
