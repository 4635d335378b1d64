"""The dream of one vector: the states in which it begins, and the training of a controller in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from rlflow.agents.dream_training import Dream
from rlflow.agents.graph_level.controller import Controller, ControllerArguments
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.factored_policy import FactoredPolicy
from rlflow.agents.maskable_ppo import train_policy
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.dream_env import GraphLevelDreamEnv, Starts, visited_states
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.model import GraphLevelModel


@dataclass(frozen=True)
class GraphLevelDream(Dream[Controller]):
    """A fitted world model, and the vectors in which dreams of it begin."""

    model: GraphLevelModel
    starts: Starts
    config: GraphLevelDreamConfig

    @classmethod
    def of(cls, model: GraphLevelModel, rollouts: Rollouts, config: GraphLevelDreamConfig) -> GraphLevelDream:
        """Return the dream that begins in the states of rollouts."""
        return cls(model, visited_states(model, rollouts), config)

    def from_start(self) -> GraphLevelDream:
        """Return the same dream, where all begin where an episode of the rollouts did."""
        return replace(self, config=replace(self.config, initial_fraction=1.0))

    def env(self, *, seed: int) -> GraphLevelDreamEnv:
        """Return the dream as a batch of environments."""
        return GraphLevelDreamEnv(self.model, self.starts, self.config, seed=seed)

    def untrained(self, config: ControllerConfig, *, seed: int) -> Controller:
        """Return a controller over the world model's rules."""
        return Controller.untrained(ControllerArguments.of(self.model, config), seed=seed)

    def training(self, beginner: Controller, *, seed: int) -> Callable[..., FactoredPolicy]:
        """Train by MaskablePPO."""
        env, known = self.env(seed=seed), beginner.arguments
        train = partial(train_policy, env, FactoredPolicy, known.policy_settings(), known.config)
        return partial(train, seed=seed, fingerprint=env.fingerprint, begin=beginner.policy)
