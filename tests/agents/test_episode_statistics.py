"""Rewards are scaled for the critic, and told as they were."""

import numpy as np
from support.slot_dream import SLOTS, SlotDream

from rlflow.agents.episode_statistics import EpisodeStatistics


def test_rewards_are_scaled_and_returns_are_not() -> None:
    """Slots 1 and 2 of the initial start state pay 1 and 2; then half of the dreams terminate, half are truncated."""
    env = EpisodeStatistics(SlotDream(initial_fraction=1.0), reward_scale=0.1)
    env.reset()
    _, reward, _, _ = env.step(np.full(8, 1))
    np.testing.assert_allclose(reward, 0.1)
    env.step(np.full(8, 2))
    assert env.take() == {"episodes": 0.0}
    env.step(np.array([SLOTS] * 4 + [0] * 4))
    assert env.take() == {"episodes": 8.0, "return_percent": 3.0, "episode_length": 3.0}
    assert env.take() == {"episodes": 0.0}


def test_the_next_episode_counts_from_zero() -> None:
    env = EpisodeStatistics(SlotDream(initial_fraction=1.0), reward_scale=0.1)
    env.reset()
    env.step(np.full(8, 3))
    env.step(np.full(8, SLOTS))
    env.take()
    env.step(np.full(8, SLOTS))
    assert env.take() == {"episodes": 8.0, "return_percent": 0.0, "episode_length": 1.0}
