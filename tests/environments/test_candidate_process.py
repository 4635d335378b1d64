"""The choice of candidates, and what episodes over them are paid."""

from dataclasses import replace

import numpy as np
import pytest
from support.token_worlds import small_graph
from support.walks import LIBRARY, REWRITER

from rlflow.cost.analytic import AnalyticConfig, AnalyticCost
from rlflow.environments.candidate_process import CandidateConfig, CandidateProcess, CandidateState
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.rules.matching.rewriter import Rewriter

FEW = CandidateConfig(max_candidates=10, max_steps=7)


def process(config: CandidateConfig = FEW, cost: AnalyticCost | None = None) -> CandidateProcess:
    return CandidateProcess(small_graph(), REWRITER, cost or AnalyticCost(), config)


def hashes(state: CandidateState) -> list[str]:
    return [candidate.hash for candidate in state.candidates]


def walk(of: CandidateProcess, steps: int, seed: int = 0) -> list[CandidateState]:
    rng, states = np.random.default_rng(seed), [of.start()]
    for _ in range(steps):
        states.append(of.step(states[-1], int(rng.integers(len(states[-1].candidates)))))
    return states


def test_candidates_are_the_distinct_graphs_that_one_rewrite_gives() -> None:
    """With K large enough for all, beside every rewrite carried out by itself."""
    state = process(replace(FEW, max_candidates=10_000)).start()
    matches = [match for of_rule in REWRITER.matches(state.graph) for match in of_rule]
    made = [structural_hash(REWRITER.apply(state.graph, match)) for match in matches]
    assert set(hashes(state)) == set(made) - {state.hash}
    assert len(set(hashes(state))) == len(state.candidates)
    assert state.alike == len(made) - len(state.candidates) > 0
    assert state.beyond == 0


def test_they_are_spread_over_rules_and_counted_where_cut_off() -> None:
    state = process().start()
    of_rule = [candidate.location.rule for candidate in state.candidates]
    matching = sum(count > 0 for count in REWRITER.matches(state.graph).counts)
    assert len(of_rule) == 10
    assert len(set(of_rule)) >= min(10, matching) - state.alike
    assert state.beyond == sum(REWRITER.matches(state.graph).counts) - 10 - state.alike > 0
    assert [*state.candidates] == sorted(state.candidates, key=lambda candidate: candidate.location)


def test_the_choice_depends_on_the_seed_and_never_on_prices() -> None:
    dear = AnalyticCost(AnalyticConfig(gflops_per_s=1, gbytes_per_s=9000, launch_us=0.0))
    for seed in range(3):
        one, other = walk(process(), 4, seed), walk(process(cost=dear), 4, seed)
        assert [hashes(state) for state in one] == [hashes(state) for state in other]
    assert not np.allclose(one[0].saving_ms / one[0].runtime_ms, other[0].saving_ms / other[0].runtime_ms)
    chosen = {tuple(hashes(process(replace(FEW, seed=seed)).start())) for seed in range(4)}
    assert len(chosen) > 1


def test_a_state_is_the_same_by_whatever_way_it_is_reached() -> None:
    """The graph of the last state handed to a new process, which has never been on the way."""
    last = walk(process(), 5)[-1]
    again = CandidateProcess(last.graph, Rewriter(LIBRARY.rules), AnalyticCost(), FEW).start()
    assert hashes(again) == hashes(last)
    assert [c.location for c in again.candidates] == [c.location for c in last.candidates]


def test_savings_are_the_differences_of_prices() -> None:
    state = walk(process(), 2)[-1]
    expected = [state.runtime_ms - AnalyticCost().runtime_ms(graph) for graph in state.graphs]
    np.testing.assert_allclose(state.saving_ms, expected, rtol=0, atol=1e-12)
    assert state.runtime_ms == AnalyticCost().runtime_ms(state.graph)


def test_every_rewrite_is_counted_once_however_often_it_is_looked_at() -> None:
    of = process()
    first = of.start()
    assert of.evaluator.effort.rewrites == len(first.candidates) + first.alike
    of.step(first, 3)
    twice = of.evaluator.effort.rewrites
    of.step(of.start(), 3)
    assert of.evaluator.effort.rewrites == twice


def test_it_refuses_what_cannot_be_improved() -> None:
    class Free(AnalyticCost):
        def runtime_ms(self, graph: Graph) -> float:
            return 0.0

    with pytest.raises(InputError, match="price is 0"):
        process(cost=Free())
    for name in ("max_steps", "max_candidates"):
        with pytest.raises(InputError, match=f"{name} must be at least 1, not 0"):
            CandidateConfig(**{name: 0})
