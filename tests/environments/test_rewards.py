"""Rewards in closed form, and what an episode of them adds up to."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from rlflow import zoo
from rlflow.cost.base import Cost
from rlflow.environments.reward_config import RewardConfig
from rlflow.environments.rewards import reward_of
from rlflow.environments.transition import Transition
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.step_reward import KINDS

GRAPH = from_onnx(zoo.build("tiny_chain"))
COMPUTED = [kind for kind in KINDS if kind != "end_to_end"]


@dataclass(frozen=True)
class Priced:
    """A state of which only the cost matters."""

    graph: Graph
    cost: Cost


def cost(runtime_ms: float, bytes_moved: int = 1000) -> Cost:
    return Cost(runtime_ms, 10, bytes_moved, 5, 0)


def earned(kind: str, start: Cost, before: Cost, after: Cost, ended: bool = False, **settings: float) -> float:
    states = [Priced(GRAPH, each) for each in (start, before, after)]
    return reward_of(RewardConfig(kind, **settings))(Transition(states, ended))


START, BEFORE, AFTER = cost(8.0, 400), cost(6.0, 500), cost(4.0, 300)


@pytest.mark.parametrize(
    ("kind", "ended", "expected"),
    [
        ("incremental", False, 100 * (6 - 4) / 8),
        ("incremental", True, 100 * (6 - 4) / 8),
        ("runtime", False, -100 * 4 / 8),
        ("weighted", False, 0.8 * 100 * (6 - 4) / 8 + 0.2 * 100 * (500 - 300) / 400),
        ("terminal", False, 0.0),
        ("terminal", True, 100 * (8 - 4) / 8),
    ],
)
def test_closed_form(kind, ended, expected):
    """Start, before and after differ in both figures, so that none can stand for another."""
    assert earned(kind, START, BEFORE, AFTER, ended) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.9), (0.5, 0.5), (1.0, 0.0), (0.0, 1.0)])
def test_weights_of_the_weighted_reward(alpha, beta):
    expected = alpha * 25 + beta * 50
    assert earned("weighted", START, BEFORE, AFTER, alpha=alpha, beta=beta) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", ["incremental", "weighted", "runtime"])
def test_faster_is_better_and_the_sign_is_right(kind):
    """The prototype's reward had the wrong sign. Bytes stay equal here, so that only the runtime speaks."""
    faster, slower = (earned(kind, cost(8.0), cost(6.0), cost(x)) for x in (5.0, 7.0))
    assert faster > slower
    if kind != "runtime":
        assert faster > 0 > slower


def episode(seed: int) -> list[Cost]:
    rng = np.random.default_rng(seed)
    return [cost(float(r), int(b)) for r, b in zip(rng.uniform(1, 9, 30), rng.integers(1, 9000, 30), strict=True)]


@pytest.mark.parametrize("seed", range(3))
def test_incremental_and_weighted_telescope(seed):
    """An episode's sum is the total improvement, whatever happened on the way; 29 roundings of numbers below 1000."""
    costs = episode(seed)
    tolerance = 29 * 1000 * np.finfo(float).eps

    def total(kind: str) -> float:
        last = len(costs) - 1
        return math.fsum(earned(kind, costs[0], costs[t - 1], costs[t], ended=t == last) for t in range(1, len(costs)))

    runtime = 100 * (costs[0].runtime_ms - costs[-1].runtime_ms) / costs[0].runtime_ms
    moved = 100 * (costs[0].bytes_moved - costs[-1].bytes_moved) / costs[0].bytes_moved
    assert total("incremental") == pytest.approx(runtime, abs=tolerance)
    assert total("terminal") == pytest.approx(runtime, abs=tolerance)
    weighted = 0.8 * runtime + 0.2 * moved
    assert total("weighted") == pytest.approx(weighted, abs=tolerance * max(1.0, abs(moved)))
    assert abs(runtime) > 1


@pytest.mark.parametrize("kind", COMPUTED)
def test_a_graph_that_costs_nothing_earns_nothing(kind):
    """A model that only passes its input on has no cost to improve: no division by zero, no NaN."""
    nothing = cost(0.0, 0)
    assert earned(kind, nothing, nothing, nothing, ended=True) == 0


def test_an_unknown_reward_is_refused():
    with pytest.raises(InputError, match=r"unknown reward .fast.: choose one of incremental, runtime"):
        RewardConfig(kind="fast")
