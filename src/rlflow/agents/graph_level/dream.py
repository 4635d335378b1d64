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
from rlflow.step_reward import INCREMENTAL, StepReward
from rlflow.world_model.graph_level.dream_env import GraphLevelDreamEnv, Starts, read_off, visited_states
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.readout import Readout


@dataclass(frozen=True)
class GraphLevelDream(Dream[Controller]):
    """A fitted world model, and the vectors in which dreams of it begin."""

    model: GraphLevelModel
    starts: Starts
    config: GraphLevelDreamConfig
    reward: StepReward = INCREMENTAL
    readout: Readout | None = None

    @classmethod
    def of(
        cls,
        model: GraphLevelModel,
        rollouts: Rollouts,
        config: GraphLevelDreamConfig,
        reward: StepReward = INCREMENTAL,
    ) -> GraphLevelDream:
        """Return the dream that begins in the states of rollouts, and pays this reward.

        `InputError` where they do not tell of what it counts.
        """
        starts, quantity = visited_states(model, rollouts), reward.quantity
        readout = None if quantity is None else read_off(model, rollouts, starts, quantity)
        return cls(model, starts, config, reward, readout)

    def from_start(self) -> GraphLevelDream:
        """Return the same dream, where all begin where an episode of the rollouts did."""
        return replace(self, config=replace(self.config, initial_fraction=1.0))

    def env(self, *, seed: int) -> GraphLevelDreamEnv:
        """Return the dream as a batch of environments."""
        known = (self.model, self.starts, self.config)
        return GraphLevelDreamEnv(*known, seed=seed, reward=self.reward, readout=self.readout)

    def untrained(self, config: ControllerConfig, *, seed: int) -> Controller:
        """Return a controller over the world model's rules."""
        return Controller.untrained(ControllerArguments.of(self.model, config), seed=seed)

    def training(self, beginner: Controller, *, seed: int) -> Callable[..., FactoredPolicy]:
        """Train by MaskablePPO."""
        env, known = self.env(seed=seed), beginner.arguments
        train = partial(train_policy, env, FactoredPolicy, known.policy_settings(), known.config)
        return partial(train, seed=seed, fingerprint=env.fingerprint, begin=beginner.policy)
