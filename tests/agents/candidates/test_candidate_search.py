"""The policy over candidates as a method: the best is kept, rewrites are counted, and other graphs are no matter."""

from dataclasses import replace

import pytest
from support.candidate_agents import NETWORK, untaught
from support.token_worlds import small_graph
from support.walks import LIBRARY, REWRITER

from rlflow import zoo
from rlflow.agents.candidates.candidate_search import CandidateSearch
from rlflow.cost.analytic import AnalyticCost
from rlflow.environments.candidate_process import CandidateConfig
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Budget, OptimisationResult
from rlflow.onnx_io import from_onnx
from rlflow.trajectory.replay import replay

EPISODES = CandidateConfig(max_candidates=20, max_steps=12)
GREEDY = replace(NETWORK, greedy_weight=50.0)


def optimised(graph: Graph, sampled: int = 0, tries: int = 1, seed: int = 0) -> OptimisationResult:
    controller = untaught(GREEDY, EPISODES)
    method = CandidateSearch(
        LIBRARY, REWRITER, AnalyticCost(), controller, sampled_episodes=sampled, candidates=tries, seed=seed
    )
    assert method.name == "candidates"
    return method.optimise(graph, Budget())


def test_the_best_is_kept_and_replays() -> None:
    """Not vacuous: the episode goes on after the best graph, as its twelve steps are not all of the trajectory."""
    result = optimised(small_graph())
    *_, last = replay(small_graph(), result.trajectory, REWRITER)
    assert structural_hash(last) == structural_hash(result.best)
    assert AnalyticCost().runtime_ms(last) == result.best_ms
    assert result.improvement_percent > 5.0
    saved = sum(step.reward for step in result.trajectory.steps)
    assert saved == pytest.approx(result.improvement_percent)
    assert len(result.trajectory.steps) < EPISODES.max_steps


def test_every_candidate_that_is_looked_at_is_counted() -> None:
    """At the first state alone there are 20."""
    result = optimised(small_graph())
    assert result.effort.rewrites >= 20 * len(result.trajectory.steps)


def test_more_episodes_find_no_less_and_repeat_themselves() -> None:
    alone, more = optimised(small_graph()), optimised(small_graph(), sampled=2, tries=4)
    assert more.best_ms <= alone.best_ms
    assert more.effort.rewrites > alone.effort.rewrites
    again = optimised(small_graph(), sampled=2, tries=4)
    assert again.trajectory == more.trajectory


def test_it_acts_on_other_graphs_and_shapes() -> None:
    """A controller that has only ever seen one memory of BERT, then a longer sentence and another network."""
    controller = untaught(GREEDY, EPISODES)
    method = CandidateSearch(LIBRARY, REWRITER, AnalyticCost(), controller, sampled_episodes=0, candidates=1)
    longer = from_onnx(zoo.build("bert", **dict(zoo.describe("bert").small) | {"sequence": 12}))
    for graph in (small_graph(), longer, small_graph("squeezenet1_1")):
        assert method.optimise(graph, Budget()).improvement_percent > 0.0


def test_budgets_are_kept() -> None:
    controller = untaught(GREEDY, EPISODES)
    method = CandidateSearch(LIBRARY, REWRITER, AnalyticCost(), controller, sampled_episodes=9, candidates=1)
    result = method.optimise(small_graph(), Budget(rewrites=60))
    assert 60 <= result.effort.rewrites < 120
