"""An agent's episodes: the first by its first choices, the others drawn, and the best program of all."""

import numpy as np
import pytest
from support.toy_compiler import SafeToyCompiler

from rlflow.errors import InputError
from rlflow.passes import search
from rlflow.passes.agents.playing import PlayConfig, Untrained, play
from rlflow.passes.environment.pass_ordering_env import Observation, PassOrderingConfig, PassOrderingEnv
from rlflow.passes.transitions import Transitions

CANCEL, SWAP, EXPAND, STOP = range(4)
EPISODE = PassOrderingConfig(max_steps=6)


class Set:
    """Stops at once if it may, and otherwise goes to the optimum of "cc"."""

    episode = EPISODE

    def __init__(self) -> None:
        self.ways: list[Way] = []

    def chooser(self) -> "Way":
        self.ways.append(Way())
        return self.ways[-1]


class Way:
    def __init__(self) -> None:
        self.ahead = [EXPAND, SWAP, CANCEL]
        self.began = ""
        self.taken: list[int | None] = []

    def probabilities(
        self, env: PassOrderingEnv, observation: Observation, mask: np.ndarray, taken: int | None
    ) -> np.ndarray:
        if not self.taken:
            self.began = env.transitions.payload(env.facts.key).decode()
        self.taken.append(taken)
        action = STOP if mask[STOP] else next((a for a in self.ahead if mask[a]), int(mask.argmax()))
        self.ahead = [a for a in self.ahead if a != action]
        return np.eye(4)[action]


def test_the_best_program_of_all_episodes_is_found() -> None:
    agent, transitions = Set(), Transitions(SafeToyCompiler())
    first = play(agent, transitions, "cc", PlayConfig(), seed=0)
    assert (first.facts.operations, first.passes, first.tried) == (2, (), 0)
    found = play(agent, transitions, "cc", PlayConfig(episodes=3), seed=0)
    assert (found.facts.operations, found.passes) == (0, ("expand", "swap", "cancel"))
    assert found.tried == 6, "a drawn episode tries all three passes at the end, and the next has nothing new to ask"
    assert [way.began for way in agent.ways] == ["cc"] * 4, "each episode has a memory of its own"
    assert agent.ways[-1].taken[:3] == [None, EXPAND, SWAP]


def test_later_episodes_return_to_the_way_to_the_best_program() -> None:
    agent, transitions = Set(), Transitions(SafeToyCompiler())
    found = play(agent, transitions, "cc", PlayConfig(episodes=30, returning=0.9), seed=0)
    assert (found.facts.operations, found.passes) == (0, ("expand", "swap", "cancel"))
    began = {way.began for way in agent.ways}
    assert began == {"cc", "baba", "abab", ""}
    assert search.sequence(transitions, transitions.start("cc"), found.passes).facts == found.facts


def test_an_agent_explores_what_it_would_not_choose() -> None:
    """It prefers one pass at the start, so that the others are met only by exploring."""
    transitions = Transitions(SafeToyCompiler())

    def actions(explore: float) -> set[int | None]:
        agent = Set()
        play(agent, transitions, "c", PlayConfig(episodes=8, explore=explore), seed=0)
        return {way.taken[1] for way in agent.ways[1:]}

    assert actions(0.0) == {EXPAND}
    assert actions(1.0) > {EXPAND}


def test_the_untrained_agent_draws_among_all_that_is_open() -> None:
    transitions = Transitions(SafeToyCompiler())
    found = play(Untrained(EPISODE), transitions, "cc", PlayConfig(episodes=30), seed=0)
    assert found.facts.operations == 0
    assert found == play(Untrained(EPISODE), transitions, "cc", PlayConfig(episodes=30), seed=0)
    brief = [play(Untrained(EPISODE), transitions, "cc", PlayConfig(episodes=2), seed=seed) for seed in range(10)]
    assert len({one.facts.operations for one in brief}) > 1, "what is drawn depends on the seed"


@pytest.mark.parametrize(
    ("settings", "message"), [({"episodes": 0}, "at least one episode"), ({"explore": 2}, "from 0")]
)
def test_bad_settings_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PlayConfig(**settings)
