"""PPO in the dream: deterministic, resumable, mask-free buffers, and it learns."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO

from rlflow.agents.config import ControllerConfig
from rlflow.agents.controller import Controller
from rlflow.agents.maskable_ppo import MaskFreeBuffer, train_controller
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.config import DreamConfig
from rlflow.world_model.dream_env import DreamEnv, visited_states
from rlflow.world_model.model import WorldModel

Fresh = Callable[[], DreamEnv]

CONFIG = ControllerConfig(total_steps=256, steps_per_update=8, batch_size=32, epochs=2, width=16, rule_embedding=4)


class Interrupted(Exception):
    """Stands for a kill between two updates."""


@pytest.fixture
def fresh(world_model: WorldModel, rollouts: Rollouts) -> Fresh:
    """Builds the same dream anew."""
    starts = visited_states(world_model, rollouts)
    return lambda: DreamEnv(world_model, starts, DreamConfig(num_envs=8, max_steps=12), seed=0)


def assert_same(one: Controller, two: Controller) -> None:
    for name, value in one.policy.state_dict().items():
        assert torch.equal(value, two.policy.state_dict()[name]), name


def test_the_same_seed_trains_the_same_controller(fresh: Fresh, tmp_path: Path) -> None:
    first, second = (train_controller(fresh(), CONFIG, seed=0) for _ in range(2))
    assert_same(first, second)
    first.save(tmp_path / "a")
    second.save(tmp_path / "b")
    for name in ("controller.safetensors", "controller.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    other = train_controller(fresh(), CONFIG, seed=1)
    assert not torch.equal(other.policy.rule_head.weight, first.policy.rule_head.weight)


def test_every_update_is_reported(fresh: Fresh, rollouts: Rollouts) -> None:
    reports: dict[int, dict[str, float]] = {}
    controller = train_controller(fresh(), CONFIG, seed=0, on_update=reports.__setitem__)
    assert sorted(reports) == [1, 2, 3, 4]
    for metrics in reports.values():
        assert {"episodes", "train/approx_kl", "train/entropy_loss"} <= set(metrics)
        assert ("return_percent" in metrics) == (metrics["episodes"] > 0)
    assert any("return_percent" in metrics for metrics in reports.values())
    assert controller.arguments.rule_ids == rollouts.rule_ids
    assert controller.arguments.library_hash == "synthetic"


@pytest.mark.parametrize("last_update", [1, 3])
def test_an_interrupted_training_goes_on_to_the_same_weights(fresh: Fresh, tmp_path: Path, last_update: int) -> None:
    whole = train_controller(fresh(), CONFIG, seed=0)
    checkpoint, updates = tmp_path / "c", []

    def interrupt(update: int, _: dict[str, float]) -> None:
        if update == last_update:
            raise Interrupted

    with pytest.raises(Interrupted):
        train_controller(fresh(), CONFIG, seed=0, checkpoint=checkpoint, on_update=interrupt)
    np.random.rand(3)  # noqa: NPY002 - the globals that PPO draws from must come from the checkpoint
    torch.rand(3)
    resumed = train_controller(
        fresh(), CONFIG, seed=0, checkpoint=checkpoint, on_update=lambda update, _: updates.append(update)
    )
    assert updates[0] == last_update + 1
    assert_same(resumed, whole)
    assert_same(train_controller(fresh(), CONFIG, seed=0, checkpoint=checkpoint), whole)


def test_the_first_minibatch_has_ratio_one(fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through PPO itself, with its buffer and its minibatches: at most float32's rounding of another batch size.
    The mean of (ratio - 1) - log ratio is what PPO calls approximate KL."""
    ratios = []
    policy_class = MaskablePPO.train

    def spy(model: MaskablePPO) -> None:
        for data in model.rollout_buffer.get(32):
            _, updated, _ = model.policy.evaluate_actions(data.observations, data.actions, data.action_masks)
            ratios.append(torch.exp(updated - data.old_log_prob).detach())
        policy_class(model)

    monkeypatch.setattr(MaskablePPO, "train", spy)
    one_update = ControllerConfig(**{**vars(CONFIG), "total_steps": 64})
    train_controller(fresh(), one_update, seed=0)
    assert len(ratios) == 2
    torch.testing.assert_close(torch.cat(ratios), torch.ones(64), rtol=0, atol=1e-5)


def test_the_buffer_keeps_no_masks(fresh: Fresh) -> None:
    dream = fresh()
    buffer = MaskFreeBuffer(8, dream.observation_space, dream.action_space, n_envs=8)
    assert buffer.action_masks.shape == (8, 8, 1)


@pytest.mark.slow
def test_ppo_beats_the_random_policy_it_starts_from(fresh: Fresh) -> None:
    """In the small dream: mean return of the last five updates against that of the first five."""
    returns: list[float] = []
    config = ControllerConfig(total_steps=12_000, steps_per_update=32, batch_size=128, width=32, learning_rate=3e-3)
    train_controller(fresh(), config, seed=0, on_update=lambda _, metrics: returns.append(metrics["return_percent"]))
    assert np.mean(returns[-5:]) > np.mean(returns[:5]) + 1.0
