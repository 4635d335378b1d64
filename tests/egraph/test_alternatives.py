"""Several solutions of one problem: each valid, each another, none cheaper than the best."""

import pytest
from hypothesis import given, settings
from support.extraction_problems import problems, shared

from rlflow.egraph import ilp
from rlflow.egraph.alternatives import alternatives
from rlflow.egraph.problem import Choice, Problem


@given(problems())
@settings(max_examples=40)
def test_each_is_a_solution_of_its_own(problem):
    best = ilp.extract(problem)
    if best is None:
        return
    others = alternatives(problem, best, count=3, spread=0.5)
    assert others == alternatives(problem, best, count=3, spread=0.5)
    assert len({frozenset(s.choices) for s in (best, *others)}) == len(others) + 1
    for solution in others:
        assert problem.is_solution(solution.chosen)
        assert solution.objective_ms == problem.price_ms(solution.choices) >= best.objective_ms


def test_close_calls_are_found():
    """Four ways that differ by a percent: a spread of 10 percent brings up others than the cheapest."""
    problem = Problem(tuple(Choice(1.0 + 0.01 * n, (0,), ()) for n in range(4)), (0,))
    best = ilp.extract(problem)
    assert best is not None
    assert len(alternatives(problem, best, count=8)) >= 2


@pytest.mark.parametrize("count", [0, 3])
def test_without_spread_there_is_no_other(count):
    problem = shared(5)
    best = ilp.extract(problem)
    assert best is not None
    assert alternatives(problem, best, count, spread=0.0) == []
