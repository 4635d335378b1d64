"""The integer program finds the cheapest solution, and proves it."""

import pytest
from hypothesis import given, settings
from support.extraction_problems import cheapest_ms, problems, ring, shared

from rlflow.egraph import greedy_extraction, ilp
from rlflow.egraph.problem import Choice, Problem
from rlflow.errors import InputError


@pytest.mark.parametrize("relaxations", [0, 8])
@given(problem=problems())
@settings(max_examples=150)
def test_nothing_is_cheaper(relaxations, problem):
    """Brute force knows neither pruning nor rows; without relaxations, the integer program finds all loops itself."""
    solution, cheapest = ilp.extract(problem, None, ilp.Limits(relaxations=relaxations)), cheapest_ms(problem)
    if solution is None:
        assert cheapest == float("inf")
        return
    assert solution.proven
    assert not solution.limited_by
    assert solution.objective_ms == cheapest == pytest.approx(solution.bound_ms)
    assert problem.is_solution(solution.chosen)


@given(problems(classes=9, choices=24))
@settings(max_examples=60)
def test_the_same_problem_has_the_same_solution(problem):
    assert ilp.extract(problem) == ilp.extract(problem)


@pytest.mark.parametrize("width", [3, 5, 9])
def test_it_sees_what_greedy_extraction_does_not(width):
    """Sharing costs 1 + width + 4 in all, and greedy extraction takes 1 + 3 width."""
    problem = shared(width)
    greedy, solution = greedy_extraction.extract(problem), ilp.extract(problem)
    assert greedy is not None
    assert solution is not None
    assert (greedy.objective_ms, solution.objective_ms) == (1.0 + 3 * width, width + 5.0)
    assert solution.proven


@pytest.mark.parametrize("length", [2, 3, 4, 7])
def test_a_ring_is_opened_once(length):
    """All classes from each other would cost `length` alone, and only rows that forbid it say 10 more for one of them.

    Pairs have their rows from the start; longer rings come out of the relaxation and are forbidden then.
    """
    solution = ilp.extract(ring(length), incumbent=None)
    assert solution is not None
    assert (solution.objective_ms, solution.proven) == (length - 1 + 10.0, True)


def test_a_loop_over_several_outputs_is_forbidden():
    """Each of two Splits reads what the other one makes: together they cost 2, and one has to be made for 10."""
    choices = (Choice(1.0, (0, 1), (3,)), Choice(1.0, (2, 3), (1,)), Choice(10.0, (1,), ()), Choice(10.0, (3,), ()))
    for relaxations in (0, 8):
        solution = ilp.extract(Problem(choices, (0, 2)), None, ilp.Limits(relaxations=relaxations))
        assert solution is not None
        assert (solution.objective_ms, solution.proven) == (12.0, True)


def test_an_incumbent_is_the_floor():
    """Without time nothing is solved, and the cheaper of the incumbent and greedy extraction's solution comes back."""
    problem = shared(5)
    best = ilp.extract(problem)
    assert best is not None
    stopped = ilp.extract(problem, best, ilp.Limits(time_s=0.0))
    assert stopped is not None
    assert (stopped.objective_ms, stopped.bound_ms, stopped.proven) == (best.objective_ms, 0.0, False)
    assert (stopped.limited_by, stopped.gap_percent) == ("time", 100.0)
    alone = ilp.extract(problem, None, ilp.Limits(time_s=0.0))
    assert alone is not None
    assert alone.objective_ms == 16.0


def test_roots_that_nothing_makes_have_no_solution():
    assert ilp.extract(Problem((Choice(1.0, (0,), (1,)),), (0,))) is None
    assert ilp.extract(Problem((Choice(1.0, (0,), (1,)), Choice(1.0, (1,), (0,))), (0,))) is None


def test_what_is_given_needs_no_solving():
    solution = ilp.extract(Problem((), (3,), frozenset({3})))
    assert solution is not None
    assert (solution.chosen, solution.objective_ms, solution.proven) == ({}, 0.0, True)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_prices_may_be_in_any_unit(scale):
    """The solver's tolerances are absolute: the same problem in nanoseconds has the same solution."""
    problem = shared(5)
    scaled = Problem(tuple(c._replace(price_ms=c.price_ms * scale) for c in problem.choices), problem.roots)
    one, other = ilp.extract(problem), ilp.extract(scaled)
    assert one is not None
    assert other is not None
    assert one.chosen == other.chosen


@pytest.mark.parametrize("ranks", [(0, 5), (5, 0)])
def test_of_equals_the_one_of_lower_rank_is_chosen(ranks):
    """Two ways at the same price, over different classes, so that neither dominates the other."""
    ways = [Choice(1.0, (0,), (way,), rank=rank) for way, rank in zip((1, 2), ranks, strict=True)]
    problem = Problem((*ways, Choice(4.0, (1,), ()), Choice(4.0, (2,), ())), (0,))
    solution = ilp.extract(problem)
    assert solution is not None
    assert solution.objective_ms == 5.0
    assert solution.chosen[0] == ranks.index(0)


def test_a_rank_never_outweighs_a_price():
    choices = (Choice(1.0, (0,), (), rank=90), Choice(1.001, (0,), ()))
    solution = ilp.extract(Problem(choices, (0,)))
    assert solution is not None
    assert solution.choices == (0,)


@pytest.mark.parametrize("limit", ["time_s", "nodes", "relative_gap", "relaxations"])
def test_a_negative_limit_is_refused(limit):
    with pytest.raises(InputError, match=f"{limit} is -1"):
        ilp.Limits(**{limit: -1})
