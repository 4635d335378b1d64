"""What environments of a batch share, on the smallest one: counters that end at three."""

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from stable_baselines3.common.vec_env import VecEnv

from rlflow.world_model.batch_env import BatchEnv


class Counters(BatchEnv):
    """Each action adds one; an episode ends at three."""

    limit = 3

    def __init__(self, number: int) -> None:
        super().__init__(number, Box(0.0, 3.0, (1,), np.float32), Discrete(1))
        self.count = np.zeros(number, dtype=np.int64)

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.count = state["count"].copy()

    def reset(self) -> np.ndarray:
        self.count[:] = 0
        return self._seen()

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        self.count += 1 + self._actions
        done = self.count == self.limit
        self.count[done] = 0
        return self._seen(), done.astype(np.float32), done, [{} for _ in done]

    def action_masks(self) -> np.ndarray:
        return np.array([[True, number % 2 == 1] for number in range(self.num_envs)])

    def _seen(self) -> np.ndarray:
        return self.count[:, None].astype(np.float32)


def test_an_episode_that_ends_begins_anew_in_the_same_step() -> None:
    env = Counters(2)
    assert isinstance(env, VecEnv)
    env.reset()
    ends = [env.step([0, 0])[2].tolist() for _ in range(6)]
    assert ends == [[False, False], [False, False], [True, True]] * 2
    assert env.reset().tolist() == [[0.0], [0.0]]


def test_a_batch_goes_on_from_its_state() -> None:
    env, other = Counters(2), Counters(2)
    env.reset()
    env.step([0, 0])
    other.load_state_dict(env.state_dict())
    assert other.step([0, 0])[0].tolist() == env.step([0, 0])[0].tolist() == [[2.0], [2.0]]


def test_what_is_asked_of_one_environment_is_asked_of_all_or_refused() -> None:
    env = Counters(3)
    assert env.get_attr("limit") == [3, 3, 3]
    assert env.get_attr("limit", [0, 2]) == [3, 3]
    assert env.env_is_wrapped(VecEnv) == [False, False, False]
    assert env.seed(4) == [4, 4, 4]
    with pytest.raises(NotImplementedError, match="share their settings"):
        env.set_attr("limit", 5)


def test_masks_are_told_by_environment_and_nothing_else_is_called() -> None:
    env = Counters(3)
    assert np.array(env.env_method("action_masks")).tolist() == [[True, False], [True, True], [True, False]]
    assert np.array(env.env_method("action_masks", indices=[1])).tolist() == [[True, True]]
    with pytest.raises(NotImplementedError, match="no environment inside"):
        env.env_method("reset")
