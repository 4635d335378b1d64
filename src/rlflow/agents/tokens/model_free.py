"""Train the pointer policy on the real graph itself, by the same algorithm and with the same eyes as in a dream.

    controller = train_on_graph(process, world_model, config, episodes, seed=0)

The baseline of every claim that a dream saves real steps: V reads the tokens for this policy too, and costs it nothing.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from rlflow.agents.maskable_ppo import OnUpdate, scaled_to, train_policy
from rlflow.agents.selection import Judge, Selection
from rlflow.agents.tokens.config import TokenControllerConfig
from rlflow.agents.tokens.controller import TokenController, TokenControllerArguments, policy_settings
from rlflow.agents.tokens.pointer_policy import PointerPolicy
from rlflow.agents.tokens.real_env import RealEpisodesConfig, real_episodes
from rlflow.environments.rewards import Reward
from rlflow.environments.token_process import TokenProcess
from rlflow.world_model.tokens.model import TokenWorldModel


def train_on_graph(
    process: TokenProcess,
    model: TokenWorldModel,
    config: TokenControllerConfig,
    episodes: RealEpisodesConfig,
    *,
    seed: int,
    reward: Reward | None = None,
    checkpoint: Path | None = None,
    on_update: OnUpdate | None = None,
    judge: Judge[TokenController] | None = None,
) -> TokenController:
    """Train by MaskablePPO on real episodes, with the reward of `real_episodes` and the options of `train_policy`.

    The metrics of each update hold `rewrites`, those that the training has carried out so far, without
    those of the judge, and the figures of the reward.
    """
    env = real_episodes(process, model, episodes, reward)
    arguments = TokenControllerArguments.of(model, config)
    weights = hashlib.sha256(b"".join(weight.numpy().tobytes() for weight in model.encoder.state_dict().values()))

    def told(update: int, metrics: dict[str, float]) -> None:
        if on_update is not None:
            on_update(update, metrics | {"rewrites": float(env.rewrites)} | env.reward.figures())

    policy = train_policy(
        env,
        PointerPolicy,
        policy_settings(arguments.embedding, config),
        scaled_to(config, env.process.best_saving_percent()),
        seed=seed,
        fingerprint=env.fingerprint(episodes, weights.hexdigest()),
        on_update=told,
        checkpoint=checkpoint,
        selection=Selection(lambda network: judge(TokenController(network, arguments))) if judge is not None else None,
    )
    return TokenController(policy, arguments)
