"""Episodes side by side: ends, truncation, invalid actions and resumption, on a process that only counts."""

from dataclasses import dataclass, field

import numpy as np
from gymnasium import spaces

from rlflow.agents.real_episodes import NOTHING, RealEpisodes


@dataclass
class Count:
    total: int = 0
    taken: list[int] = field(default_factory=list)


class Counting(RealEpisodes[Count]):
    """Action k adds k + 1, of which 3 is not there; to stop pays 10, and the last step before the horizon 100 more."""

    def __init__(self) -> None:
        super().__init__(2, 3, spaces.Box(0, 99, (1,), np.int64), max_choices=4)
        self.begin()

    def new_episode(self) -> Count:
        return Count()

    def choice(self, episode: Count, action: int) -> int:
        return action if action != 2 else NOTHING

    def take(self, episode: Count, choice: int, is_last: bool) -> float:
        if choice == NOTHING:
            return -1.0
        episode.total += choice + 1
        return float(choice + 1 + 100 * is_last)

    def stop(self, episode: Count) -> float:
        return 10.0

    def observation(self, episode: Count) -> np.ndarray:
        return np.array([episode.total])


def test_episodes_end_by_terminate_and_at_the_horizon() -> None:
    env = Counting()
    assert env.reset().tolist() == [[0], [0]]
    observation, reward, done, infos = env.step(np.array([0, 4]))
    assert (observation.tolist(), reward.tolist(), done.tolist()) == ([[1], [0]], [1.0, 10.0], [False, True])
    assert infos[1] == {"terminal_observation": np.array([0]), "TimeLimit.truncated": False}
    env.step(np.array([2, 3]))
    observation, reward, done, infos = env.step(np.array([1, 0]))
    assert (observation.tolist(), reward.tolist(), done.tolist()) == ([[0], [5]], [102.0, 1.0], [True, False])
    assert infos[0] == {"terminal_observation": np.array([3]), "TimeLimit.truncated": True}
    assert env.interactions == 4, "an invalid action and terminate are none"


def test_a_batch_goes_on_where_another_was() -> None:
    env, again = Counting(), Counting()
    env.step(np.array([0, 2]))
    env.step(np.array([1, 3]))
    again.load_state_dict(env.state_dict())
    for action in ([3, 2], [0, 0]):
        one, other = (of.step(np.array(action)) for of in (env, again))
        assert [part.tolist() for part in one[:3]] == [part.tolist() for part in other[:3]]
    assert again.interactions == env.interactions
