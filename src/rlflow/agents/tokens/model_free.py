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
from rlflow.agents.tokens.match_level_process import RealObserver
from rlflow.agents.tokens.pointer_policy import PointerPolicy
from rlflow.agents.tokens.real_env import RealEpisodesConfig, real_episodes
from rlflow.environments.rewards import Reward, RewardConfig
from rlflow.environments.token_process import TokenProcess
from rlflow.ir.structural_hash import structural_hash
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
    observer = RealObserver(model)
    env = real_episodes(process, observer, episodes, reward)
    arguments = TokenControllerArguments.of(model, config)
    start = process.start()
    saving_percent = observer.best_saving_percent(observer.first(start), process.unit_percent)

    def told(update: int, metrics: dict[str, float]) -> None:
        if on_update is not None:
            on_update(update, metrics | {"rewrites": float(env.rewrites)} | env.reward.figures())

    policy = train_policy(
        env,
        PointerPolicy,
        policy_settings(arguments.embedding, config),
        scaled_to(config, saving_percent),
        seed=seed,
        fingerprint=_fingerprint(process, model, episodes, env.reward.config),
        on_update=told,
        checkpoint=checkpoint,
        selection=Selection(lambda network: judge(TokenController(network, arguments))) if judge is not None else None,
    )
    return TokenController(policy, arguments)


def _fingerprint(
    process: TokenProcess, model: TokenWorldModel, episodes: RealEpisodesConfig, reward: RewardConfig
) -> str:
    """Hash of all that an episode depends on."""
    prices = (process.evaluator.cost_model.name, process.start_ms)
    said = (structural_hash(process.start().graph), prices, [rule.id for rule in process.rules], episodes, reward)
    digest = hashlib.sha256(repr(said).encode())
    for weight in model.encoder.state_dict().values():
        digest.update(weight.numpy().tobytes())
    return digest.hexdigest()
