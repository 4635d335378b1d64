"""Masks are neither kept nor asked for, whatever the observation is made of."""

import numpy as np
import torch
from sb3_contrib.common.maskable.buffers import MaskableDictRolloutBuffer
from support.slot_dream import SlotDream

from rlflow.agents.rollout_buffers import MaskFreeBuffer, MaskFreeDictBuffer


def test_the_buffers_keep_no_masks() -> None:
    """Not vacuous: sb3-contrib's keeps a number for each action of each step."""
    dream = SlotDream()
    parts, actions = dream.observation_space, dream.action_space
    flat = MaskFreeBuffer(6, parts["filled"], actions, n_envs=8)
    named = MaskFreeDictBuffer(6, parts, actions, n_envs=8)
    stock = MaskableDictRolloutBuffer(6, parts, actions, n_envs=8)
    assert flat.action_masks.shape == named.action_masks.shape == (6, 8, 1)
    assert stock.action_masks.shape == (6, 8, 5)
    assert flat.observations.shape == (6, 8, 4)
    assert named.observations["filled"].shape == (6, 8, 4)


def test_rows_stay_together_and_none_is_copied() -> None:
    """What is observed, done and earned in a step is in one row of a minibatch: here all of them say the same."""
    buffer = MaskFreeBuffer(3, SlotDream().observation_space["filled"], SlotDream().action_space, n_envs=8)
    for step in range(3):
        number = 8.0 * step + np.arange(8)
        seen = np.repeat(number[:, None], 4, axis=1).astype(np.float32)
        values = torch.from_numpy(number).float()
        buffer.add(seen, number.astype(np.int64), np.ones(8), np.zeros(8), values, values)
    kept = buffer.observations
    rows = [batch for batch in buffer.get(5)]
    told = torch.cat([torch.stack([b.observations[:, 0], b.actions.flatten(), b.old_values], dim=1) for b in rows])
    assert (told == told[:, :1]).all()
    assert sorted(told[:, 0].tolist()) == list(range(24))
    assert np.shares_memory(buffer.observations, kept)


def test_a_minibatch_is_what_is_stored_and_does_not_change_with_it() -> None:
    dream = SlotDream()
    buffer = MaskFreeBuffer(2, dream.observation_space["filled"], dream.action_space, n_envs=8)
    for step in range(2):
        seen = np.full((8, 4), step, dtype=np.float32)
        buffer.add(seen, np.arange(8), np.ones(8), np.zeros(8), torch.zeros(8), torch.zeros(8))
    (batch,) = buffer.get(16)
    kept = batch.observations.clone()
    assert sorted(kept[:, 0].tolist()) == [0.0] * 8 + [1.0] * 8
    assert sorted(batch.actions.flatten().tolist()) == sorted([*range(8), *range(8)])
    buffer.observations[:] = 7.0
    assert torch.equal(batch.observations, kept)
