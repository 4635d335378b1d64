"""Train the pointer policy on the real graph itself, by the same algorithm and with the same eyes as in a dream.

    training = train_in_dream(RealGraph(world_model, process, episodes), config, seed=0)
    training = train_and_try(process, world_model, config, episodes, seed=0)       snapshots are tried on the graph

The baseline of every claim that a dream saves real steps: V reads the tokens for this policy too, and costs it nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from rlflow.agents.dream_training import Dream, train_in_dream
from rlflow.agents.maskable_ppo import OnUpdate, scaled_to, train_policy
from rlflow.agents.match_level.controller import MatchLevelController, MatchLevelControllerArguments
from rlflow.agents.match_level.match_level_process import MatchLevelProcess
from rlflow.agents.match_level.pointer_config import CmaEsConfig, MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.agents.match_level.pointer_policy import PointerPolicy
from rlflow.agents.match_level.real_env import real_episodes, real_return
from rlflow.agents.real_episodes import RealEpisodes
from rlflow.agents.selection import Selection, Trial
from rlflow.environments.rewards import Reward
from rlflow.errors import InputError
from rlflow.kept import fingerprint
from rlflow.processes.token_process import TokenProcess
from rlflow.world_model.match_level.model import MatchLevelModel


@dataclass(frozen=True)
class RealGraph(Dream[MatchLevelController]):
    """A graph in the place of a dream of it: a controller learns from episodes that start there, and are played there.

    The metrics of each update hold `rewrites`, those that the training has carried out so far, without those of a
    judge, and the figures of the reward. The reward is by price, unless another is given.
    """

    model: MatchLevelModel
    starts: TokenProcess
    config: RealEpisodesConfig
    reward: Reward | None = None

    def at(self, temperature: float) -> Self:
        """Return the same, at its beginning. `InputError` for another temperature than 1."""
        if temperature != 1.0:
            raise InputError(f"temperature={temperature:g} is of dreams; a controller that learns on a graph has none")
        return replace(self)

    def from_start(self) -> RealGraph:
        """Return the same with one episode at a time: all that begin at the graph are alike."""
        return replace(self, config=replace(self.config, num_envs=1))

    @property
    def rewrites(self) -> int:
        return self._episodes.rewrites

    def env(self, *, seed: int) -> RealEpisodes[MatchLevelProcess]:
        """Return the episodes side by side; nothing is drawn in them."""
        return self._episodes

    @cached_property
    def _episodes(self) -> RealEpisodes[MatchLevelProcess]:
        return real_episodes(self.starts, self.model, self.config, self.reward)

    def untrained(self, config: MatchLevelControllerConfig, *, seed: int) -> MatchLevelController:
        """Return a controller that sees by V."""
        arguments = MatchLevelControllerArguments.of(self.model, config, self.config.max_steps)
        return MatchLevelController.untrained(arguments, seed=seed)

    def training(self, beginner: MatchLevelController, *, seed: int) -> Callable[..., PointerPolicy]:
        """Train by MaskablePPO, with rewards on the scale of the best match. `InputError` for settings of evolution."""
        env, embedding, config = self._episodes, beginner.arguments.embedding, beginner.arguments.config
        if isinstance(config, CmaEsConfig):
            raise InputError("a controller evolves in dreams alone: train on the graph by PPO")
        weights = fingerprint(content=(weight.numpy() for weight in self.model.encoder.state_dict().values()))

        def train(
            on_update: OnUpdate | None, checkpoint: Path | None, selection: Selection[PointerPolicy] | None
        ) -> PointerPolicy:
            def told(update: int, metrics: dict[str, float]) -> None:
                if on_update is not None:
                    on_update(update, metrics | {"rewrites": float(env.rewrites)} | env.reward.figures())

            return train_policy(
                env,
                PointerPolicy,
                {"embedding": embedding, "config": config},
                scaled_to(config, env.process.best_saving_percent()),
                seed=seed,
                fingerprint=env.fingerprint(self.config, weights),
                begin=beginner.policy,
                on_update=told,
                checkpoint=checkpoint,
                selection=selection,
            )

        return train


@dataclass(frozen=True)
class RealTraining:
    """A controller that was trained on a graph, the metrics of each update, and the trials of its snapshots.

    rewrites: those carried out to learn, and to choose among the snapshots.
    """

    controller: MatchLevelController
    updates: Sequence[Mapping[str, float]]
    trials: Sequence[Trial]
    seconds: float
    rewrites: int

    def course(self, name: str) -> list[float]:
        """Return a metric of the updates that have it."""
        return [update[name] for update in self.updates if name in update]


def train_and_try(
    process: TokenProcess,
    model: MatchLevelModel,
    config: MatchLevelControllerConfig,
    episodes: RealEpisodesConfig,
    *,
    seed: int,
    reward: Reward | None = None,
) -> RealTraining:
    """Train on the graph, and keep the best snapshot by the return of an episode in the reward that is learned from."""
    started, updates, trials = time.perf_counter(), list[dict[str, float]](), list[Trial]()

    def judge(controller: MatchLevelController) -> Trial:
        trials.append(real_return(process, model, controller, episodes.max_steps, reward))
        return trials[-1]

    training = train_in_dream(
        RealGraph(model, process, episodes, reward),
        config,
        seed=seed,
        on_round=lambda _, metrics: updates.append(metrics),
        judge=judge,
    )
    return RealTraining(training.controller, updates, trials, time.perf_counter() - started, training.rewrites)
