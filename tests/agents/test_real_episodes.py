"""Episodes side by side: ends, truncation, invalid actions and resumption, on a process that only counts."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces

from rlflow.agents.real_episodes import NOTHING, RealEpisodes
from rlflow.environments.reward_config import RewardConfig
from rlflow.environments.transition import Transition


@dataclass
class Sum:
    """A state of which nothing but a number is known."""

    graph: Any


@dataclass
class Count:
    visited: list[Sum] = field(default_factory=lambda: [Sum(0)])
    taken: list[int] = field(default_factory=list)


class Growth:
    """A reward: by how much the number grew, and 10 more at an end; it counts how often it was asked."""

    config = RewardConfig(invalid=-1.0)

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, transition: Transition) -> float:
        self.asked += 1
        before, after = (state.graph for state in transition.states[-2:])
        return float(after - before + 10 * transition.ended)

    def figures(self) -> dict[str, float]:
        return {"asked": self.asked}

    def state_dict(self) -> dict[str, Any]:
        return {"asked": self.asked}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.asked = state["asked"]


class Counting(RealEpisodes[Count]):
    """Action k adds k + 1, of which 3 is not there."""

    def __init__(self) -> None:
        super().__init__(2, 3, spaces.Box(0, 99, (1,), np.int64), 4, Growth())
        self.begin()

    def new_episode(self) -> Count:
        return Count()

    def choice(self, episode: Count, action: int) -> int:
        return action if action != 2 else NOTHING

    def take(self, episode: Count, choice: int) -> Sum:
        return Sum(episode.visited[-1].graph + choice + 1)

    def observation(self, episode: Count) -> np.ndarray:
        return np.array([episode.visited[-1].graph])


def test_episodes_end_by_terminate_and_at_the_horizon() -> None:
    env = Counting()
    assert env.reset().tolist() == [[0], [0]]
    observation, reward, done, infos = env.step(np.array([0, 4]))
    assert (observation.tolist(), reward.tolist(), done.tolist()) == ([[1], [0]], [1.0, 10.0], [False, True])
    assert infos[1] == {"terminal_observation": np.array([0]), "TimeLimit.truncated": False, "final_graph": 0}
    _, reward, _, _ = env.step(np.array([2, 3]))
    assert reward.tolist() == [-1.0, 4.0], "an invalid action costs what the reward says"
    observation, reward, done, infos = env.step(np.array([1, 0]))
    assert (observation.tolist(), reward.tolist(), done.tolist()) == ([[0], [5]], [12.0, 1.0], [True, False])
    assert infos[0] == {"terminal_observation": np.array([3]), "TimeLimit.truncated": True, "final_graph": 3}
    assert env.rewrites == 4, "an invalid action and terminate are none"


def test_a_batch_goes_on_where_another_was() -> None:
    env, again = Counting(), Counting()
    env.step(np.array([0, 2]))
    env.step(np.array([1, 3]))
    again.load_state_dict(env.state_dict())
    for action in ([3, 2], [0, 0]):
        one, other = (of.step(np.array(action)) for of in (env, again))
        assert [part.tolist() for part in one[:3]] == [part.tolist() for part in other[:3]]
    assert again.rewrites == env.rewrites
    assert again.reward.figures() == env.reward.figures(), "to play an episode again asks for no reward"
