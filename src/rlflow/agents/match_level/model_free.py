"""Train the pointer policy on the real graph itself, by the same algorithm and with the same eyes as in a dream.

    controller = train_on_graph(process, world_model, config, episodes, seed=0)
    training = train_and_try(process, world_model, config, episodes, seed=0)       snapshots are tried on the graph

The baseline of every claim that a dream saves real steps: V reads the tokens for this policy too, and costs it nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlflow.agents.maskable_ppo import OnUpdate, scaled_to, train_policy
from rlflow.agents.match_level.controller import MatchLevelController, MatchLevelControllerArguments
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig
from rlflow.agents.match_level.pointer_policy import PointerPolicy
from rlflow.agents.match_level.real_env import RealEpisodesConfig, real_episodes, real_return
from rlflow.agents.selection import Judge, Selection, Trial
from rlflow.environments.rewards import Reward
from rlflow.kept import fingerprint
from rlflow.processes.token_process import TokenProcess
from rlflow.world_model.match_level.model import MatchLevelModel


def train_on_graph(
    process: TokenProcess,
    model: MatchLevelModel,
    config: MatchLevelControllerConfig,
    episodes: RealEpisodesConfig,
    *,
    seed: int,
    reward: Reward | None = None,
    checkpoint: Path | None = None,
    on_update: OnUpdate | None = None,
    judge: Judge[MatchLevelController] | None = None,
) -> MatchLevelController:
    """Train by MaskablePPO on real episodes, with the reward of `real_episodes` and the options of `train_policy`.

    The metrics of each update hold `rewrites`, those that the training has carried out so far, without
    those of the judge, and the figures of the reward.
    """
    env = real_episodes(process, model, episodes, reward)
    arguments = MatchLevelControllerArguments.of(model, config, episodes.max_steps)
    weights = fingerprint(content=(weight.numpy() for weight in model.encoder.state_dict().values()))

    def told(update: int, metrics: dict[str, float]) -> None:
        if on_update is not None:
            on_update(update, metrics | {"rewrites": float(env.rewrites)} | env.reward.figures())

    policy = train_policy(
        env,
        PointerPolicy,
        {"embedding": arguments.embedding, "config": config},
        scaled_to(config, env.process.best_saving_percent()),
        seed=seed,
        fingerprint=env.fingerprint(episodes, weights),
        on_update=told,
        checkpoint=checkpoint,
        selection=Selection(lambda network: judge(MatchLevelController(network, arguments)))
        if judge is not None
        else None,
    )
    return MatchLevelController(policy, arguments)


@dataclass(frozen=True)
class RealTraining:
    """A controller that was trained on a graph, the metrics of each update, and the trials of its snapshots."""

    controller: MatchLevelController
    updates: Sequence[Mapping[str, float]]
    trials: Sequence[Trial]
    seconds: float

    @property
    def rewrites(self) -> int:
        """The rewrites that were carried out to learn, and to choose among the snapshots."""
        learned = int(self.updates[-1]["rewrites"]) if self.updates else 0
        return learned + sum(trial.rewrites for trial in self.trials)

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

    controller = train_on_graph(
        process,
        model,
        config,
        episodes,
        seed=seed,
        reward=reward,
        on_update=lambda _, metrics: updates.append(metrics),
        judge=judge,
    )
    return RealTraining(controller, updates, trials, time.perf_counter() - started)
