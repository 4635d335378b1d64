"""The measured reward: when it measures, what it adds up to, what it remembers, and real graphs in ONNX Runtime.

Where only the bookkeeping is asked for, savings are given, so that sums are exact.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from rlflow import zoo
from rlflow.cost.base import Cost
from rlflow.environments import RULE_AND_LOCATION, RewardConfig, SubstitutionEnv
from rlflow.environments.end_to_end import EndToEnd
from rlflow.environments.rewards import reward_of
from rlflow.environments.transition import Transition
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.runtime.timing.savings import Saving

CONFIG = RewardConfig("end_to_end", rounds=5, runs_per_round=1)


@dataclass(frozen=True)
class Unpriced:
    """A state whose price nobody may ask for."""

    graph: Graph

    @cached_property
    def cost(self) -> Cost:
        raise AssertionError("a measured reward reads no price")


@pytest.fixture(scope="module")
def states() -> list[Unpriced]:
    """Eight different graphs: chains of growing length."""
    return [Unpriced(from_onnx(zoo.build("tiny_chain", width=4, inner=4, length=length))) for length in range(1, 9)]


def metered(states: list[Unpriced], percents: list[float], noise: float = 2.0) -> tuple[EndToEnd, list[int]]:
    """A reward by which the k-th state saves the k-th of these percentages, and the states that it asked for."""
    asked: list[int] = []
    places = {id(state.graph): place for place, state in enumerate(states)}

    def saving_of(start: Graph, graph: Graph, config: RewardConfig) -> Saving:
        asked.append(places[id(graph)])
        found = percents[asked[-1]]
        return Saving(found, found - noise, found + noise)

    return EndToEnd(CONFIG, saving_of), asked


def rewards_of(reward: EndToEnd, states: list[Unpriced], *, terminates: bool = True) -> list[float]:
    """The rewards of an episode through these states, ended by terminate or cut off by the horizon."""
    last = len(states) - 1
    earned = [
        reward(Transition(states[: step + 1], ended=step == last and not terminates)) for step in range(1, len(states))
    ]
    return [*earned, reward(Transition([*states, states[-1]], ended=True))] if terminates else earned


PERCENTS = [0.0, 10.0, 20.0, 5.0, 40.0, 30.0, 60.0, 70.0]


@pytest.mark.parametrize("terminates", [True, False])
@pytest.mark.parametrize(
    ("every", "measured"), [(1, [1, 2, 3, 4, 5, 6, 7]), (3, [3, 6, 7]), (7, [7]), (50, [7]), (None, [7])]
)
def test_rewards_add_up_to_the_last_total(states, every, measured, terminates):
    """Whatever is between: the sum is the total of the last state, which is always measured."""
    reward, asked = metered(states, PERCENTS)
    reward.config = replace(CONFIG, every=every)
    earned = rewards_of(reward, states, terminates=terminates)
    assert asked == measured
    assert sum(earned) == pytest.approx(70.0)
    steps = [step for step, value in enumerate(earned, 1) if value]
    assert steps == [*measured[:-1], len(earned) if terminates and measured[-1] % (every or 99) else 7]


def test_between_measurements_it_is_the_constant(states):
    reward, _ = metered(states, PERCENTS)
    reward.config = replace(CONFIG, every=3, between=0.1)
    assert rewards_of(reward, states) == pytest.approx([0.1, 0.1, 5.0, 0.1, 0.1, 55.0, 0.1, 10.0])


def test_a_graph_is_timed_once_and_the_start_never(states):
    """Across episodes, and on the way back; another start is another question."""
    reward, asked = metered(states, PERCENTS)
    there_and_back = [states[0], states[1], states[0], states[1], states[2]]
    assert rewards_of(reward, there_and_back) == pytest.approx([10.0, -10.0, 10.0, 10.0, 0.0])
    assert rewards_of(reward, there_and_back) == pytest.approx([10.0, -10.0, 10.0, 10.0, 0.0])
    assert asked == [1, 2]
    figures = reward.figures()
    assert (figures["measurements"], figures["rewards_measured"], figures["rewards_noise"]) == (2, 8, 0)
    rewards_of(reward, [states[1], states[2]])
    assert asked == [1, 2, 2]


def test_noise_is_no_reward_and_small_gains_are_not_lost(states):
    """Of steps of 1.5 percent, each within the noise of the last that counted, the third one pays for all."""
    reward, asked = metered(states, [0.0, 1.5, 3.0, 4.5, 6.0, 7.5, 9.0, 7.5])
    earned = rewards_of(reward, states)
    assert earned == pytest.approx([0.0, 3.0, 0.0, 3.0, 0.0, 3.0, 0.0, 0.0])
    assert sum(earned) == pytest.approx(9.0)
    assert asked == [1, 2, 3, 4, 5, 6, 7]
    assert reward.figures()["rewards_noise"] == 5


def test_it_goes_on_from_what_it_knew(states):
    """After a resumption nothing is timed again."""
    reward, _ = metered(states, PERCENTS)
    earned = rewards_of(reward, states)
    resumed, asked = metered(states, [99.0] * 8)
    resumed.load_state_dict(reward.state_dict())
    assert resumed.figures() == reward.figures()
    assert rewards_of(resumed, states) == earned
    assert asked == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"every": 0}, r"reward\.every is 0: measure every 1 or more steps, or null, at the end alone"),
        ({"between": float("nan")}, r"reward\.between is nan: choose a finite reward"),
        ({"setting": "fast"}, r"unknown reward\.setting 'fast': choose one of as_written, deployed"),
        ({"rounds": 4}, r"reward\.rounds is 4: noise is not told from a gain in under 5"),
        ({"runs_per_round": 0}, r"reward\.runs_per_round is 0: choose 1 or more"),
        ({"threads": 0}, r"reward\.threads is 0: choose 1 or more"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        RewardConfig("end_to_end", **settings)


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SubstitutionEnv:
    """A chain whose middle is 2,048 wide, all of whose weights can be folded into one of 64 x 64, a thirtieth of it.

    Temporary files go to a folder of the test's own.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    graph = from_onnx(zoo.build("tiny_chain", rows=8, inner=2048, length=2))
    made = gymnasium.make(RULE_AND_LOCATION, model=graph, reward=CONFIG, max_steps=4, max_locations=5)
    assert isinstance(made.unwrapped, SubstitutionEnv)
    return made.unwrapped


def fold(env: SubstitutionEnv) -> tuple[int, int]:
    """The action that makes the cheapest graph."""
    found = [(r, k, match) for r, matches in enumerate(env.state.matches) for k, match in enumerate(matches)]
    prices = [env.process.evaluator.runtime_after_ms(env.graph, match) for *_, match in found]
    return found[int(np.argmin(prices))][:2]


def test_a_graph_that_is_really_faster_earns_it(env: SubstitutionEnv, tmp_path: Path):
    """A thirtieth of the products: far beyond noise. Its files are gone, and the second episode times nothing."""
    totals = []
    for _ in range(2):
        env.reset(seed=0)
        action = fold(env)
        _, reward, *_, info = env.step(action)
        assert info["measurements"] == 1
        assert info["measuring_s"] > 0
        assert reward > 0
        _, rest, terminated, _, info = env.step((env.actions.terminate, 0))
        assert terminated
        assert (rest, info["measurements"]) == (0.0, 1)
        totals.append(reward + rest)
    assert totals[0] == totals[1]
    assert list(tmp_path.iterdir()) == []


def test_the_start_itself_earns_nothing_unmeasured(env: SubstitutionEnv):
    env.reset(seed=0)
    _, reward, *_, info = env.step((env.actions.terminate, 0))
    assert (reward, info["measurements"], info["measuring_s"]) == (0.0, 0, 0.0)


def test_all_but_the_rewards_is_as_by_prices(make_env: Callable[..., SubstitutionEnv]):
    """The same graphs, observations and prices, whichever reward is measured: nothing but it depends on a clock."""
    seen = []
    for reward in (reward_of(RewardConfig()), EndToEnd(replace(CONFIG, every=None))):
        env = make_env(from_onnx(zoo.build("tiny_merge")), max_steps=3)
        env.reward = reward
        observation, info = env.reset(seed=3, options={"start_rewrites": 1})
        steps = [(env.state.hash, info["runtime_ms"], observation["cost"].item())]
        for _ in range(3):
            rule = int(observation["counts"].argmax())
            observation, _, _, _, info = env.step((rule, 0))
            steps.append((env.state.hash, info["runtime_ms"], observation["cost"].item()))
        seen.append(steps)
    assert seen[0] == seen[1]
