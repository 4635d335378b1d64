"""Greedy extraction gives a solution whenever there is one, and the cheapest where nothing is shared."""

from hypothesis import given, settings
from support.extraction_problems import cheapest_ms, problems, ring, shared

from rlflow.egraph import greedy_extraction
from rlflow.egraph.problem import Choice, Problem


@given(problems())
@settings(max_examples=200)
def test_there_is_a_solution_if_and_only_if_one_is_found(problem):
    """Brute force tells; a solution is never made from itself, and never cheaper than the cheapest."""
    solution, cheapest = greedy_extraction.extract(problem), cheapest_ms(problem)
    assert (solution is None) == (cheapest == float("inf"))
    if solution is not None:
        assert problem.is_solution(solution.chosen)
        assert solution.objective_ms >= cheapest


def test_in_a_chain_it_finds_the_cheapest():
    """Three ways to each of five classes from the next: without sharing, Dijkstra's algorithm is exact."""
    ways = [Choice(price, (c,), (c + 1,)) for c in range(5) for price in (3.0, 1.0, 2.0)]
    solution = greedy_extraction.extract(Problem((*ways, Choice(1.0, (5,), ())), (0,)))
    assert solution is not None
    assert solution.objective_ms == 6.0


def test_it_does_not_see_what_several_could_share():
    """Four classes pay 3 each, where sharing one of 4 they would pay 4 + 4."""
    problem = shared(4)
    solution = greedy_extraction.extract(problem)
    assert solution is not None
    assert (solution.objective_ms, cheapest_ms(problem)) == (13.0, 9.0)


def test_a_ring_is_opened():
    """Four classes made from each other in a ring: one of them has to be made from nothing."""
    solution = greedy_extraction.extract(ring(4))
    assert solution is not None
    assert solution.objective_ms in (13.0, 40.0)


def test_a_guide_gives_other_prices_and_leaves_choices_out():
    problem = Problem((Choice(1.0, (0,), ()), Choice(2.0, (0,), ()), Choice(3.0, (0,), ())), (0,))
    guided = greedy_extraction.extract(problem, {1: 9.0, 2: 8.0})
    assert guided is not None
    assert (guided.choices, guided.objective_ms) == ((2,), 3.0)
    assert greedy_extraction.extract(problem, {}) is None
