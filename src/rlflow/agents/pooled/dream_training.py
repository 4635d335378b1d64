"""Train a controller in the dream, and score it there."""

import dataclasses
from pathlib import Path

from rlflow.agents.dream_training import DreamTraining, train_and_score, untrained_network
from rlflow.agents.maskable_ppo import OnUpdate, train_policy
from rlflow.agents.pooled.config import ControllerConfig
from rlflow.agents.pooled.controller import Controller, ControllerArguments
from rlflow.agents.pooled.factored_policy import FactoredPolicy
from rlflow.agents.scores import mean_return
from rlflow.agents.selection import Judge, Selection
from rlflow.world_model.pooled.config import DreamConfig
from rlflow.world_model.pooled.dream_env import PooledDreamEnv, Starts
from rlflow.world_model.pooled.model import WorldModel


def train_in_dream(
    model: WorldModel,
    starts: Starts,
    dream: DreamConfig,
    config: ControllerConfig,
    *,
    seed: int,
    checkpoint: Path | None = None,
    on_round: OnUpdate | None = None,
    judge: Judge[Controller] | None = None,
) -> DreamTraining[Controller]:
    """Train in dreams that begin in `starts`; only the judge, if there is one, takes real steps."""
    arguments = ControllerArguments.of(model, config)
    env = PooledDreamEnv(model, starts, dream, seed=seed)

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
        lambda controller: dream_score(model, starts, controller, dream, seed=seed),
        judge,
    )


def dream_score(model: WorldModel, starts: Starts, controller: Controller, config: DreamConfig, *, seed: int) -> float:
    """Mean return, in percent, of one episode in each of the batch's dreams.

    The dreams start where real episodes start, and the controller takes its most probable actions.
    """
    env = PooledDreamEnv(model, starts, dataclasses.replace(config, initial_fraction=1.0), seed=seed)
    return mean_return(env, controller.act)


def untrained(arguments: ControllerArguments, *, seed: int) -> Controller:
    """The same network before training: the baseline of a score."""
    return Controller(untrained_network(arguments.new_policy, seed=seed), arguments)
