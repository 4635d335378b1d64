"""Greedy search and then a policy: the better of both, with the effort of both."""

from dataclasses import dataclass
from itertools import count

import pytest
from support.detours import COST, INTO, OUT, detour_rules, detours, walked
from support.token_worlds import small_graph
from support.walks import LIBRARY

from rlflow.agents.after_greedy import AfterGreedy
from rlflow.agents.policy_optimiser import Best, Player, PolicyOptimiser
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.evaluator import Evaluator
from rlflow.ir.graph import Graph
from rlflow.method import Budget, never
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.search.greedy import Greedy
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import replay

RULES = detour_rules()
REWRITER = SharingRewriter(RULES.rules)
PLACES = 2


class Walker(Player):
    """Follows a way that is written down, one rewrite after another."""

    def __init__(self, graph: Graph, way: Trajectory) -> None:
        self.evaluator = Evaluator(REWRITER, COST)
        self._graph, self._way = graph, way

    def start(self) -> Best:
        start_ms = self._way.start_runtime_ms
        return Best(self._graph, start_ms, Trajectory(self._way.start_hash, start_ms, COST.name, RULES.hash, ()))

    def play(self, generator: object, candidates: int, is_over: object = never) -> Best:
        graph = self._graph
        for step in self._way.steps:
            numbers = {rule.id: number for number, rule in enumerate(REWRITER.rules)}
            match = REWRITER.matches(graph)[numbers[step.rule]][step.location]
            graph = self.evaluator.rewritten(graph, match)
        return Best(graph, COST.runtime_ms(graph), self._way)


@dataclass(frozen=True, kw_only=True)
class Walk(PolicyOptimiser):
    way: Trajectory

    def player(self, graph: Graph) -> Player:
        return Walker(graph, self.way)


def after_greedy(way: Trajectory) -> AfterGreedy:
    return AfterGreedy(Greedy(RULES, REWRITER, COST), Walk(sampled_episodes=0, candidates=1, way=way))


def test_a_policy_that_knows_more_is_followed() -> None:
    """Greedy search takes no step here: the first one of the detour costs something."""
    graph, way = detours(PLACES), walked(detours(PLACES), (OUT, INTO) * PLACES, RULES)
    greedy = Greedy(RULES, REWRITER, COST).optimise(graph, Budget())
    assert greedy.best_ms == greedy.start_ms
    found = after_greedy(way).optimise(graph, Budget())
    assert found.best_ms == way.steps[-1].runtime_ms < greedy.best_ms
    *_, last = replay(graph, found.trajectory, REWRITER)
    assert COST.runtime_ms(last) == found.best_ms
    assert found.effort.rewrites == greedy.effort.rewrites + len(way.steps)
    prices = [milestone.runtime_ms for milestone in found.milestones]
    assert prices == sorted(prices, reverse=True)
    assert prices[-1] == found.best_ms
    assert found.milestones[-1].rewrites == found.effort.rewrites


def test_a_policy_that_knows_less_is_not() -> None:
    """Half of the detour is dearer than the original, with which greedy search ends."""
    graph, way = detours(PLACES), walked(detours(PLACES), (OUT,), RULES)
    assert way.steps[-1].runtime_ms > way.start_runtime_ms
    found = after_greedy(way).optimise(graph, Budget())
    greedy = Greedy(RULES, REWRITER, COST).optimise(graph, Budget())
    assert (found.best_ms, found.trajectory) == (greedy.best_ms, greedy.trajectory)
    assert found.effort.rewrites == greedy.effort.rewrites + 1
    assert found.milestones == found.milestones[:1]


def test_greedy_search_alone_is_left_where_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, way = detours(PLACES), walked(detours(PLACES), (OUT, INTO), RULES)
    clock = count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    found = after_greedy(way).optimise(graph, Budget(time_s=0.5))
    assert found.best_ms == found.start_ms
    assert found.trajectory.steps == ()


@pytest.mark.parametrize(
    "budget", [Budget(rewrites=1), Budget(is_called_off=lambda: True)], ids=["rewrites", "called off"]
)
def test_greedy_search_alone_is_left_where_nothing_else_is_to_be_done(budget: Budget) -> None:
    """By rewrites, of which greedy search needs more here, and where the search is called off."""
    rules = LIBRARY
    rewriter, graph, cost = Rewriter(rules.rules), small_graph("bert"), AnalyticCost()
    greedy = Greedy(rules, rewriter, cost)
    way = walked(detours(PLACES), (OUT,), RULES)
    optimiser = AfterGreedy(greedy, Walk(sampled_episodes=0, candidates=1, way=way))
    assert optimiser.optimise(graph, budget).trajectory == greedy.optimise(graph, budget).trajectory
