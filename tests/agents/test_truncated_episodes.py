"""The critic's word counts where an episode is cut off, there alone, and once."""

from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3.common.vec_env import VecEnv
from support.slot_dream import SLOTS, SlotDream, SlotPolicy

from rlflow.agents.truncated_episodes import TruncatedEpisodes

DISCOUNT = 0.9


def policy(env: VecEnv) -> SlotPolicy:
    torch.manual_seed(0)
    return SlotPolicy(env.observation_space, env.action_space, lambda _: 1e-3, net_arch=[16])


def wrapped() -> TruncatedEpisodes:
    env = TruncatedEpisodes(SlotDream(initial_fraction=1.0), DISCOUNT)
    env.policy = policy(env)
    return env


def played(env: VecEnv) -> list[tuple[np.ndarray, np.ndarray, list[dict[str, Any]]]]:
    """Slots 1 and 2 of the initial start state; then half of the episodes terminate, and half are cut off."""
    env.reset()
    return [env.step(actions)[1:] for actions in (np.full(8, 1), np.full(8, 2), np.array([SLOTS] * 4 + [3] * 4))]


def test_a_truncated_step_is_worth_what_the_critic_expects_after_it() -> None:
    """Asked about one episode at a time, as Stable-Baselines3 asks. Not vacuous: the critic expects something."""
    env, plain = wrapped(), played(SlotDream(initial_fraction=1.0))
    for (reward, done, infos), (valued, still_done, _) in zip(plain, played(env), strict=True):
        for index, info in enumerate(infos):
            if info.get("TimeLimit.truncated"):
                last, _ = env.policy.obs_to_tensor(info["terminal_observation"])
                expected = env.policy.predict_values(last).item()
                assert abs(expected) > 1e-3
                assert valued[index] == pytest.approx(reward[index] + DISCOUNT * expected, rel=1e-5)
            else:
                assert valued[index] == reward[index]
        assert (done == still_done).all()
    truncated = [bool(info.get("TimeLimit.truncated")) for info in plain[-1][2]]
    assert truncated == [False] * 4 + [True] * 4


def test_it_is_not_done_twice() -> None:
    """Stable-Baselines3 asks its critic where a truncated step comes with a terminal observation."""
    _, done, infos = played(wrapped())[-1]
    assert done.all()
    assert all("terminal_observation" in info for info in infos[:4])
    assert not any("terminal_observation" in info for info in infos[4:])
