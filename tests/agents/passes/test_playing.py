"""An agent's episodes: the first by its first choices, the others drawn, and the best program of all."""

import numpy as np
import pytest
from support.toy_compiler import SafeToyCompiler

from rlflow.agents.passes.playing import play
from rlflow.environments.pass_ordering_env import Observation, PassOrderingConfig, PassOrderingEnv
from rlflow.errors import InputError
from rlflow.passes.transitions import Transitions

CANCEL, SWAP, EXPAND, STOP = range(4)


class ByHeart:
    """Stops at once in the first episode, and goes to the optimum of "cc" in every drawn one."""

    episode = PassOrderingConfig(max_steps=6)

    def __init__(self) -> None:
        self.choosers = 0

    def chooser(self) -> "Way":
        self.choosers += 1
        return Way()


class Way:
    def __init__(self) -> None:
        self.ahead = [EXPAND, SWAP, CANCEL, STOP]

    def choose(self, env: PassOrderingEnv, observation: Observation, draw: np.random.Generator | None) -> int:
        return STOP if draw is None else self.ahead.pop(0)


def test_the_best_program_of_all_episodes_is_found() -> None:
    agent, transitions = ByHeart(), Transitions(SafeToyCompiler())
    first = play(agent, transitions, "cc", episodes=1, seed=0)
    assert (first.facts.operations, first.passes, first.tried) == (2, (), 0)
    found = play(agent, transitions, "cc", episodes=3, seed=0)
    assert (found.facts.operations, found.passes) == (0, ("expand", "swap", "cancel"))
    assert found.tried == 6, "three passes in each drawn episode; stop is none"
    assert agent.choosers == 4, "each episode has a memory of its own"


def test_no_episode_is_refused() -> None:
    with pytest.raises(InputError, match="at least one episode"):
        play(ByHeart(), Transitions(SafeToyCompiler()), "cc", episodes=0, seed=0)
