"""Train a policy by MaskablePPO (Schulman et al. 2017, Huang and Ontañón 2022), usually inside the dream.

    policy = train_policy(dream, FactoredPolicy, network, config, seed=0, fingerprint=dream.fingerprint)

The algorithm is sb3-contrib's, unchanged. What is ours: rewards scaled for the critic, which is asked about truncated
episodes together, a buffer without masks (the observations carry them), checkpoints, and the choice among snapshots.

The invariant: a training that was killed and resumed ends with the same weights, to the bit. So a checkpoint holds
everything that the next rollout depends on, the state of both global random generators included.
"""

import dataclasses
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from torch import nn

from rlflow import kept
from rlflow.agents.episode_statistics import EpisodeStatistics
from rlflow.agents.ppo_config import PPOConfig
from rlflow.agents.rollout_buffers import MaskFreeBuffer, MaskFreeDictBuffer
from rlflow.agents.selection import Selection
from rlflow.agents.truncated_episodes import TruncatedEpisodes
from rlflow.world_model.batch_env import BatchEnv
from rlflow.world_model.checkpoint import read_checkpoint, write_checkpoint

log = logging.getLogger(__name__)

OnUpdate = Callable[[int, dict[str, float]], None]
Policy = TypeVar("Policy", bound=MaskableActorCriticPolicy)
Config = TypeVar("Config", bound=PPOConfig)

_LEAST_SAVING_PERCENT = 1e-3  # below which a saving tells of no scale


def train_policy(
    env: BatchEnv,
    policy_class: type[Policy],
    policy_kwargs: dict[str, Any],
    config: PPOConfig,
    *,
    seed: int,
    fingerprint: str,
    begin: nn.Module | None = None,
    on_update: OnUpdate | None = None,
    checkpoint: Path | None = None,
    selection: Selection[Policy] | None = None,
) -> Policy:
    """A policy trained in `env`; the same seed gives the same weights.

    env: dreams, or episodes on a real graph. policy_class: one that reads its masks from the observation. fingerprint:
    names the environment and the network; with config, seed and the weights at first, all that a training depends on.
    begin: a network like the policy's, whose weights it goes on from; None: the seed draws them. on_update(update,
    metrics) after every update: mean return in percent and length of the episodes that ended, losses, entropy,
    approximate KL, and the real score if the policy was tried. checkpoint: a file written before every rollout; if it
    exists and is of the same run, the training goes on from it. selection: tries the policy every `updates_per_trial`
    updates and after the last one; the best snapshot is returned. Without it the last one is.
    """
    scaled = EpisodeStatistics(env, config.reward_scale)
    truncated = TruncatedEpisodes(scaled, config.discount)
    in_parts = isinstance(env.observation_space, spaces.Dict)
    model = MaskablePPO(
        policy_class,
        truncated,
        # the last rollout may end beyond total_steps, where what remains is negative
        learning_rate=lambda remaining: config.learning_rate * max(0.0, remaining),
        n_steps=config.steps_per_update,
        batch_size=config.batch_size,
        n_epochs=config.epochs,
        gamma=config.discount,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        ent_coef=config.entropy_weight,
        vf_coef=config.value_weight,
        max_grad_norm=config.max_gradient_norm,
        rollout_buffer_class=MaskFreeDictBuffer if in_parts else MaskFreeBuffer,
        policy_kwargs=policy_kwargs,
        seed=seed,
        device="cpu",
    )
    model.set_logger(Logger(folder=None, output_formats=[]))
    policy: Policy = model.policy  # type: ignore[assignment]
    truncated.policy = policy
    if begin is not None:
        policy.load_state_dict(begin.state_dict())

    weights = (tensor.numpy() for tensor in policy.state_dict().values())
    run = kept.fingerprint(config, seed, fingerprint, selection is not None, content=weights)
    progress = _Progress(scaled, policy, config.updates_per_trial, run, checkpoint, on_update, selection)
    progress.init_callback(model)
    progress.restore()
    if selection is not None and selection.tries_untrained and not model.num_timesteps:
        selection.consider(policy)

    remaining = config.total_steps - model.num_timesteps
    if remaining > 0:
        model.learn(remaining, callback=progress, reset_num_timesteps=False, log_interval=None, use_masking=False)  # type: ignore[arg-type]

    if selection is not None:
        selection.choose(policy)
    return policy.eval().requires_grad_(False)


def scaled_to(config: Config, saving_percent: float) -> Config:
    """The same settings where a saving of so much counts as the `reward_scale` of the settings, if it is any."""
    if saving_percent < _LEAST_SAVING_PERCENT:
        return config
    return dataclasses.replace(config, reward_scale=config.reward_scale / saving_percent)


class _Progress(BaseCallback, Generic[Policy]):
    """A callback that reports and stores between an update and the next rollout, when nothing is in flight."""

    def __init__(
        self,
        env: EpisodeStatistics,
        policy: Policy,
        updates_per_trial: int,
        run: str,
        checkpoint: Path | None,
        on_update: OnUpdate | None,
        selection: Selection[Policy] | None,
    ) -> None:
        super().__init__()
        self.env, self.policy, self.updates_per_trial, self.run = env, policy, updates_per_trial, run
        self.checkpoint, self.on_update, self.selection = checkpoint, on_update, selection
        self.updates = 0

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        self._report(last=False)

    def _on_training_end(self) -> None:
        self._report(last=True)

    def _report(self, last: bool) -> None:
        """Report the update that has just finished, once."""
        finished = self.model._n_updates // self.model.n_epochs  # type: ignore[attr-defined]
        if finished == self.updates:
            return
        self.updates = finished

        values = self.model.logger.name_to_value
        metrics = self.env.take() | {name: float(value) for name, value in values.items()}
        if self.selection is not None and (last or finished % self.updates_per_trial == 0):
            metrics["real_score_percent"] = self.selection.consider(self.policy)

        log.info("update %d: %s", finished, {name: round(value, 4) for name, value in metrics.items()})
        if self.checkpoint is not None:
            write_checkpoint(self.checkpoint, self.run, finished, self._state())
        if self.on_update is not None:
            self.on_update(finished, metrics)

    def _state(self) -> dict[str, Any]:
        model, env = self.model, self.env
        return {
            "policy": model.policy.state_dict(),
            "optimiser": model.policy.optimizer.state_dict(),
            "num_timesteps": model.num_timesteps,
            "n_updates": model._n_updates,
            "last_observation": _as_tensors(model._last_obs),
            "last_starts": torch.from_numpy(np.array(model._last_episode_starts)),
            "env": env.get_attr("state_dict")[0](),
            "selection": self.selection.state_dict() if self.selection is not None else None,
            "totals": torch.from_numpy(env.totals),
            "lengths": torch.from_numpy(env.lengths),
            "torch_random": torch.get_rng_state(),
            "numpy_random": _numpy_state(),
        }

    def restore(self) -> None:
        """Go on from the checkpoint, if there is one of this run."""
        found = read_checkpoint(self.checkpoint, self.run) if self.checkpoint is not None else None
        if found is None:
            return
        self.updates, state = found
        model, env = self.model, self.env
        model.policy.load_state_dict(state["policy"])
        model.policy.optimizer.load_state_dict(state["optimiser"])
        model.num_timesteps = state["num_timesteps"]
        model._n_updates = state["n_updates"]
        model._last_obs = _as_arrays(state["last_observation"])
        model._last_episode_starts = state["last_starts"].numpy()
        env.get_attr("load_state_dict")[0](state["env"])
        if self.selection is not None:
            self.selection.load_state_dict(state["selection"])
        env.totals, env.lengths = state["totals"].numpy(), state["lengths"].numpy()
        torch.set_rng_state(state["torch_random"])
        _set_numpy_state(state["numpy_random"])


def _as_tensors(observation: Any) -> Any:
    """A copy of an observation, flat or in named parts, as a checkpoint may hold it."""
    if isinstance(observation, dict):
        return {name: _as_tensors(part) for name, part in observation.items()}
    return torch.from_numpy(np.array(observation))


def _as_arrays(observation: Any) -> Any:
    """The observation that `_as_tensors` was given."""
    if isinstance(observation, dict):
        return {name: _as_arrays(part) for name, part in observation.items()}
    return observation.numpy()


def _numpy_state() -> dict[str, Any]:
    """State of numpy's global generator, which shuffles PPO's minibatches, as plain values."""
    name, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002
    return {
        "name": name,
        "keys": torch.from_numpy(np.asarray(keys).astype(np.int64)),
        "tail": [int(position), int(has_gauss), float(cached)],
    }


def _set_numpy_state(state: dict[str, Any]) -> None:
    keys = state["keys"].numpy().astype(np.uint32)
    np.random.set_state((state["name"], keys, *state["tail"]))  # noqa: NPY002
