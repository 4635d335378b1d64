"""The integer program finds the cheapest solution, and proves it."""

import pytest
from hypothesis import example, given, settings
from support.extraction_problems import cheapest_ms, problems, ring, shared

from rlflow.saturation import greedy_extraction, ilp
from rlflow.saturation.problem import Choice, Problem


@given(problems())
@settings(max_examples=300, deadline=None)
def test_nothing_is_cheaper(problem):
    """Not vacuous: see the next test; brute force knows neither pruning nor loops."""
    solution, cheapest = ilp.extract(problem), cheapest_ms(problem)
    if solution is None:
        assert cheapest == float("inf")
        return
    assert solution.proven and not solution.limited_by
    assert solution.objective_ms == solution.bound_ms == cheapest
    assert problem.is_solution(solution.chosen)
