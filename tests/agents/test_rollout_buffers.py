"""Masks are neither kept nor asked for, whatever the observation is made of."""

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
