"""What every dream does, whatever its states are: on one whose outcomes are known exactly."""

import numpy as np
import pytest
import torch
from sb3_contrib.common.maskable.utils import is_masking_supported
from stable_baselines3.common.vec_env import VecEnv
from support.slot_dream import SLOTS, SlotDream

from rlflow.errors import InputError
from rlflow.world_model.dream_env import INVALID_ACTION_REWARD


def every(dream: SlotDream, action: int) -> np.ndarray:
    """The same action in all dreams."""
    return np.full(dream.num_envs, action)


def walk(dream: SlotDream, steps: int) -> np.ndarray:
    """The rewards (T, B) of taking slot after slot."""
    return np.stack([dream.step(every(dream, step % SLOTS))[1] for step in range(steps)])


def test_it_is_a_vectorised_environment_of_the_declared_spaces() -> None:
    dream = SlotDream()
    assert isinstance(dream, VecEnv)
    for observation in (dream.reset(), dream.step(every(dream, 0))[0]):
        for index in range(dream.num_envs):
            assert dream.observation_space.contains({name: rows[index] for name, rows in observation.items()})


@pytest.mark.parametrize(("fraction", "expected"), [(1.0, {0}), (0.0, {0, 1, 2, 3, 4})])
def test_dreams_begin_in_an_initial_start_state_or_in_any(fraction: float, expected: set[int]) -> None:
    dream = SlotDream(initial_fraction=fraction)
    seen = {int(first) // 10 for _ in range(20) for first in dream.reset()["value"][:, 0, 0]}
    assert seen == expected


def test_an_outcome_is_the_imagined_one() -> None:
    dream = SlotDream()
    before = dream.reset()
    after, reward, done, infos = dream.step(every(dream, 1))
    np.testing.assert_array_equal(reward, before["value"][:, 1, 0])
    np.testing.assert_array_equal(after["value"], before["value"])
    assert not after["filled"][:, 1].any()
    assert after["filled"][:, 0].all()
    assert not done.any()
    assert infos == [{}] * dream.num_envs


def test_an_invalid_action_costs_a_hundred_and_changes_nothing_where_it_is_taken() -> None:
    """In the same step the others go on: the last slot is filled in the initial start state alone."""
    dream = SlotDream()
    before = dream.reset()
    valid = before["filled"][:, -1] > 0
    assert 0 < valid.sum() < dream.num_envs
    after, reward, done, _ = dream.step(every(dream, SLOTS - 1))
    np.testing.assert_array_equal(reward == INVALID_ACTION_REWARD, ~valid)
    np.testing.assert_array_equal(after["filled"][~valid], before["filled"][~valid])
    assert not after["filled"][valid, -1].any()
    assert not done.any()


def test_an_episode_ends_by_terminate_and_another_begins_in_the_same_step() -> None:
    dream = SlotDream()
    dream.reset()
    dream.step(every(dream, 0))
    ending = every(dream, 1)
    ending[2] = SLOTS
    after, _, done, infos = dream.step(ending)
    np.testing.assert_array_equal(np.flatnonzero(done), [2])
    assert [index for index, info in enumerate(infos) if info] == [2]
    assert infos[2]["TimeLimit.truncated"] is False
    last = infos[2]["terminal_observation"]
    assert dream.observation_space.contains(last)
    assert last["filled"][:2].tolist() == [0.0, 1.0]
    assert after["filled"][2, :2].tolist() == [1.0, 1.0]
    assert not after["filled"][[0, 1, 3, 4, 5, 6, 7], :2].any()
    assert dream.steps.tolist() == [2, 2, 0, 2, 2, 2, 2, 2]


def test_the_horizon_truncates_also_after_an_invalid_action() -> None:
    dream = SlotDream()
    dream.reset()
    for action in (0, 0):
        assert not dream.step(every(dream, action))[2].any()
    _, _, done, infos = dream.step(every(dream, 1))
    assert done.all()
    assert all(info["TimeLimit.truncated"] is True for info in infos)


def test_the_same_seed_dreams_the_same() -> None:
    walks = []
    for seed in (3, 3, 4):
        dream = SlotDream(noise=1.0)
        dream.seed(seed)
        dream.reset()
        walks.append(walk(dream, 10))
    np.testing.assert_array_equal(walks[0], walks[1])
    assert (walks[0] != walks[2]).any()


def test_a_dream_goes_on_from_its_state_in_another_object() -> None:
    dream, other = SlotDream(noise=1.0), SlotDream(noise=1.0, seed=9)
    dream.reset()
    walk(dream, 4)
    other.load_state_dict({name: value.clone() for name, value in dream.state_dict().items()})
    np.testing.assert_array_equal(walk(dream, 10), walk(other, 10))
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in dream.state_dict().items())


def test_without_an_initial_start_state_it_is_refused() -> None:
    with pytest.raises(InputError, match="no start state; give rollouts"):
        SlotDream(starts=0)


def test_what_an_inner_environment_would_answer_is_refused() -> None:
    dream = SlotDream()
    assert not is_masking_supported(dream)
    with pytest.raises(NotImplementedError, match="build another batch"):
        dream.set_attr("noise", None)
    assert dream.env_is_wrapped(object) == [False] * dream.num_envs
    assert dream.get_attr("max_steps", [0, 1]) == [3, 3]
