"""What every policy's optimiser does with its episodes, shown by players whose episodes are written down."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from support.walks import LIBRARY, REWRITER

from rlflow import zoo
from rlflow.agents.policy_optimiser import Best, Player, PolicyOptimiser, judge_on
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.evaluator import Evaluator
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Budget, never
from rlflow.onnx_io import from_onnx
from rlflow.trajectory.record import Trajectory


class Scripted(Player):
    """The runtimes of the best graphs of its episodes are given; each episode rewrites once, and is noted."""

    def __init__(self, graph: Graph, found_ms: list[float], played: list[tuple[bool, int]]) -> None:
        self.evaluator = Evaluator(REWRITER, AnalyticCost())
        self._graph, self._found_ms, self._played = graph, found_ms, played
        self._match = next(match for group in REWRITER.matches(graph) for match in group)

    def start(self) -> Best:
        return self._best(10.0)

    def play(self, generator: torch.Generator | None, candidates: int, is_over: Callable[[], bool] = never) -> Best:
        self._played.append((generator is not None, candidates))
        self.evaluator.rewritten(self._graph, self._match)
        return self._best(self._found_ms[len(self._played) - 1])

    def _best(self, runtime_ms: float) -> Best:
        trajectory = Trajectory(structural_hash(self._graph), runtime_ms, "analytic", LIBRARY.hash, ())
        return Best(self._graph, runtime_ms, trajectory)


@dataclass(frozen=True, kw_only=True)
class Script(PolicyOptimiser):
    found_ms: list[float]
    played: list[tuple[bool, int]]

    def player(self, graph: Graph) -> Player:
        return Scripted(graph, self.found_ms, self.played)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return from_onnx(zoo.build("tiny_chain"))


def script(*found_ms: float, sampled_episodes: int = 2, candidates: int = 4) -> Script:
    return Script(sampled_episodes=sampled_episodes, candidates=candidates, found_ms=list(found_ms), played=[])


def test_the_first_episode_is_the_policy_s_own_and_drawn_ones_come_last(graph: Graph) -> None:
    optimiser = script(9.0, 9.0, 9.0, 9.0)
    optimiser.optimise(graph, Budget())
    assert optimiser.played == [(False, 1), (False, 4), (True, 4), (True, 4)]
    alone = script(9.0, 9.0, 9.0, candidates=1)
    alone.optimise(graph, Budget())
    assert alone.played == [(False, 1), (True, 1), (True, 1)]


def test_the_best_of_all_episodes_is_kept_and_the_original_counts(graph: Graph) -> None:
    """Each milestone is cheaper than the one before; the second and the last episode found nothing new."""
    result = script(8.0, 9.0, 6.0, 7.0).optimise(graph, Budget())
    assert (result.start_ms, result.best_ms) == (10.0, 6.0)
    assert [milestone.runtime_ms for milestone in result.milestones] == [10.0, 8.0, 6.0]
    assert [milestone.rewrites for milestone in result.milestones] == [0, 1, 3]
    worse = script(11.0, 12.0, 13.0, 14.0).optimise(graph, Budget())
    assert worse.best_ms == worse.start_ms == 10.0
    assert worse.effort.rewrites == 4


def test_a_budget_ends_between_episodes(graph: Graph) -> None:
    optimiser = script(9.0, 5.0, 5.0, 5.0)
    assert optimiser.optimise(graph, Budget(expansions=1)).best_ms == 9.0
    assert len(optimiser.played) == 1
    assert script(9.0).optimise(graph, Budget(time_s=1e-9)).best_ms == 10.0


def test_a_judge_tells_what_a_controller_improves_and_what_that_took(graph: Graph) -> None:
    trial = judge_on(graph, lambda found_ms: script(found_ms, sampled_episodes=0, candidates=1))(7.5)
    assert (trial.score_percent, trial.rewrites) == (25.0, 1)


def test_visits_are_the_policy_s_own(graph: Graph) -> None:
    """The most probable actions first, and nothing is tried beside them, however many candidates it may have."""
    optimiser = script(9.0, 8.0, 7.0, candidates=4)
    visits = optimiser.visits(graph, drawn=2)
    assert optimiser.played == [(False, 1), (True, 1), (True, 1)]
    assert [way.start_runtime_ms for way in visits.ways] == [9.0, 8.0, 7.0]
    assert visits.rewrites == 3


def test_rewrites_and_whoever_calls_off_end_it(graph: Graph) -> None:
    """Each episode here carries out one rewrite; the budget is asked before each."""
    optimiser = script(9.0, 8.0, 7.0, 6.0)
    found = optimiser.optimise(graph, Budget(rewrites=2))
    assert (len(optimiser.played), found.best_ms) == (2, 8.0)
    called_off = script(9.0, 8.0, 7.0, 6.0)
    assert called_off.optimise(graph, Budget(is_called_off=lambda: True)).best_ms == 10.0
    assert called_off.played == []
