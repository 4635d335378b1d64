"""Train the controller by MaskablePPO (Schulman et al. 2017, Huang and Ontañón 2022), usually inside the dream.

    controller = train_controller(DreamEnv(model, starts, dream, seed=0), config, seed=0)

The algorithm is sb3-contrib's, unchanged. What is ours: rewards scaled for the critic, a buffer without masks (the
observations carry them), checkpoints, and the choice among snapshots.

The invariant: a training that was killed and resumed ends with the same weights, to the bit. So a checkpoint holds
everything that the next rollout depends on, the state of both global random generators included.
"""

import dataclasses
import hashlib
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from rlflow.agents.config import ControllerConfig
from rlflow.agents.controller import Controller, ControllerArguments, policy_settings
from rlflow.agents.factored_policy import FactoredPolicy
from rlflow.agents.selection import Selection
from rlflow.world_model.checkpoint import read_checkpoint, write_checkpoint

log = logging.getLogger(__name__)

OnUpdate = Callable[[int, dict[str, float]], None]


def train_controller(
    env: VecEnv,
    config: ControllerConfig,
    *,
    seed: int,
    on_update: OnUpdate | None = None,
    checkpoint: Path | None = None,
    selection: Selection | None = None,
) -> Controller:
    """A controller trained in `env`; the same seed gives the same weights.

    env: a `DreamEnv`, or any VecEnv that has its `layout`, `rule_ids`, `library_hash`, `fingerprint`, `state_dict` and
    `load_state_dict`. on_update(update, metrics) after every update: mean return in percent and length of the episodes
    that ended, losses, entropy, approximate KL, and the real score if the controller was tried. checkpoint: a file
    written before every rollout; if it exists and is of the same run, the training goes on from it. selection: tries
    the controller every `updates_per_trial` updates and after the last one; the best snapshot is returned. Without it
    the last one is.
    """
    scaled = EpisodeStatistics(env, config.reward_scale)
    arguments = ControllerArguments(
        rule_ids=tuple(env.get_attr("rule_ids")[0]),
        library_hash=env.get_attr("library_hash")[0],
        max_locations=int(env.action_space.nvec[1]),  # type: ignore[attr-defined]
        layout=env.get_attr("layout")[0],
        config=config,
    )

    model = MaskablePPO(
        FactoredPolicy,
        scaled,
        learning_rate=lambda remaining: config.learning_rate * remaining,
        n_steps=config.steps_per_update,
        batch_size=config.batch_size,
        n_epochs=config.epochs,
        gamma=config.discount,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        ent_coef=config.entropy_weight,
        vf_coef=config.value_weight,
        max_grad_norm=config.max_gradient_norm,
        rollout_buffer_class=MaskFreeBuffer,
        policy_kwargs=policy_settings(arguments),
        seed=seed,
        device="cpu",
    )
    model.set_logger(Logger(folder=None, output_formats=[]))
    controller = Controller(model.policy, arguments)  # type: ignore[arg-type]

    run = _fingerprint(arguments, seed, env, selection is not None)
    progress = _Progress(scaled, controller, run, checkpoint, on_update, selection)
    progress.init_callback(model)
    progress.restore()

    remaining = config.total_steps - model.num_timesteps
    if remaining > 0:
        model.learn(remaining, callback=progress, reset_num_timesteps=False, log_interval=None, use_masking=False)  # type: ignore[arg-type]

    if selection is not None:
        selection.choose(controller)
    controller.policy.eval().requires_grad_(False)
    return controller


class MaskFreeBuffer(MaskableRolloutBuffer):
    """A rollout buffer without masks, which the observations carry; one column of ones satisfies the interface."""

    def reset(self) -> None:
        """Empty the buffer."""
        super().reset()
        self.mask_dims = 1
        self.action_masks = np.ones((self.buffer_size, self.n_envs, 1), dtype=np.float32)


class EpisodeStatistics(VecEnvWrapper):
    """A wrapper that scales rewards for the critic and sums up the unscaled returns of the episodes that end."""

    def __init__(self, venv: VecEnv, reward_scale: float) -> None:
        super().__init__(venv)
        self.reward_scale = reward_scale
        self.totals = np.zeros(venv.num_envs)
        self.lengths = np.zeros(venv.num_envs, dtype=np.int64)
        self.finished: list[tuple[float, int]] = []

    def reset(self) -> np.ndarray:
        """Begin all episodes anew."""
        self.totals[:], self.lengths[:] = 0, 0
        return self.venv.reset()  # type: ignore[return-value]

    def step_wait(self) -> Any:
        """Step the environment; the rewards that come back are scaled."""
        observation, reward, done, infos = self.venv.step_wait()
        self.totals += reward
        self.lengths += 1
        for index in np.flatnonzero(done):
            self.finished.append((float(self.totals[index]), int(self.lengths[index])))
            self.totals[index], self.lengths[index] = 0, 0
        return observation, reward * self.reward_scale, done, infos

    def take(self) -> dict[str, float]:
        """Number, mean return in percent and mean length of the episodes finished since the last call."""
        finished, self.finished = self.finished, []
        if not finished:
            return {"episodes": 0.0}
        returns, lengths = zip(*finished, strict=True)
        return {
            "episodes": float(len(finished)),
            "return_percent": float(np.mean(returns)),
            "episode_length": float(np.mean(lengths)),
        }


class _Progress(BaseCallback):
    """A callback that reports and stores between an update and the next rollout, when nothing is in flight."""

    def __init__(
        self,
        env: EpisodeStatistics,
        controller: Controller,
        run: str,
        checkpoint: Path | None,
        on_update: OnUpdate | None,
        selection: Selection | None,
    ) -> None:
        super().__init__()
        self.env, self.controller, self.run = env, controller, run
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
        if self.selection is not None and (last or finished % self.controller.arguments.config.updates_per_trial == 0):
            metrics["real_score_percent"] = self.selection.consider(self.controller)

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
            "last_observation": torch.from_numpy(np.array(model._last_obs)),
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
        model._last_obs = state["last_observation"].numpy()
        model._last_episode_starts = state["last_starts"].numpy()
        env.get_attr("load_state_dict")[0](state["env"])
        if self.selection is not None:
            self.selection.load_state_dict(state["selection"])
        env.totals, env.lengths = state["totals"].numpy(), state["lengths"].numpy()
        torch.set_rng_state(state["torch_random"])
        _set_numpy_state(state["numpy_random"])


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


def _fingerprint(arguments: ControllerArguments, seed: int, env: VecEnv, selects: bool) -> str:
    """Hash of all that a training depends on."""
    settings = dataclasses.asdict(arguments) | {"seed": seed, "env": env.get_attr("fingerprint")[0], "selects": selects}
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
