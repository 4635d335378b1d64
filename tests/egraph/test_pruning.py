"""What is left out is never missed."""

from hypothesis import given, settings
from support.extraction_problems import cheapest_ms, problems

from rlflow.egraph.problem import Choice, Problem
from rlflow.egraph.pruning import pruned, useful


def _only(problem: Problem, kept: list[int]) -> Problem:
    return Problem(tuple(problem.choices[n] for n in kept), problem.roots, problem.given)


@given(problems())
@settings(max_examples=200)
def test_the_cheapest_price_stays(problem):
    """With and without a known solution to prune by: the tightest one is the cheapest itself."""
    cheapest = cheapest_ms(problem)
    assert cheapest_ms(_only(problem, pruned(problem))) == cheapest
    assert cheapest_ms(_only(problem, pruned(problem, cheapest))) == cheapest


def test_each_reason_to_leave_a_choice_out():
    choices = (
        Choice(2.0, (0,), (1,)),  # kept
        Choice(2.0, (0,), (1, 2)),  # dominated: it needs more
        Choice(3.0, (0,), (1,)),  # dominated: it is dearer
        Choice(1.0, (0,), (0,)),  # reads what it makes
        Choice(1.0, (0,), (7,)),  # reads what nothing makes
        Choice(9.0, (0,), ()),  # too dear: 9 > 8
        Choice(4.0, (1,), ()),  # kept
        Choice(7.0, (1,), ()),  # dominated
        Choice(3.0, (1,), (3,)),  # too dear from root to leaf: 2 + 3 + 4 > 8
        Choice(4.0, (3,), ()),  # leads nowhere after that
        Choice(1.0, (5,), ()),  # no root leads to it
    )
    assert pruned(Problem(choices, (0,)), at_most_ms=8.0) == [0, 6]
    # Without the known solution, what is too dear stays.
    assert pruned(Problem(choices, (0,))) == [0, 5, 6, 8, 9]


def test_of_equal_choices_the_first_stays():
    assert pruned(Problem((Choice(1.0, (0,), ()), Choice(1.0, (0,), ())), (0,))) == [0]


def test_a_choice_with_more_outputs_is_not_dominated():
    choices = (Choice(1.0, (0,), ()), Choice(2.0, (0, 1), ()))
    assert pruned(Problem(choices, (0, 1))) == [0, 1]
    assert pruned(Problem((*choices, Choice(1.0, (1, 0), ())), (0, 1))) == [2]


def test_nothing_is_useful_without_the_leaves():
    problem = Problem((Choice(1.0, (0,), (1,)), Choice(1.0, (1,), ())), (0,))
    assert useful(problem, [0, 1]) == [0, 1]
    assert useful(problem, [0]) == []
