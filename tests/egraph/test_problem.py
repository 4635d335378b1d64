"""Choices over classes: what is a solution, what it costs, what can be made at all."""

import pytest
from hypothesis import given
from support.extraction_problems import problems

from rlflow.egraph.problem import Choice, Problem, Solution
from rlflow.errors import GraphError


@pytest.mark.parametrize("price_ms", [-1.0, float("nan"), float("inf")])
def test_a_price_is_finite_and_not_negative(price_ms):
    with pytest.raises(GraphError, match="choice 0 costs"):
        Problem((Choice(price_ms, (0,), ()),), (0,))


def test_a_choice_makes_something():
    with pytest.raises(GraphError, match="choice 1 makes nothing"):
        Problem((Choice(1.0, (0,), ()), Choice(1.0, (None,), ())), (0,))


def test_an_application_is_paid_for_once():
    """A Split of which both outputs are read, one of them twice."""
    problem = Problem((Choice(2.0, (0,), (1, 2, 1)), Choice(5.0, (1, 2), ())), (0,))
    solution = problem.solved({0: 0, 1: 1, 2: 1}, "by hand")
    assert solution.objective_ms == 7.0
    assert solution.choices == (1, 0)


def test_what_is_not_needed_is_not_paid_for():
    problem = Problem((Choice(2.0, (0,), ()), Choice(5.0, (1,), ())), (0,))
    assert problem.solved({0: 0, 1: 1}, "by hand").chosen == {0: 0}


def test_what_is_given_is_neither_made_nor_paid_for():
    problem = Problem((Choice(2.0, (0,), (1,)), Choice(5.0, (1,), ())), (0, 2), frozenset({1, 2}))
    assert problem.solved({0: 0, 1: 1}, "by hand").objective_ms == 2.0


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        ({0: 0}, "class 1 is needed, and nothing that was chosen makes it"),
        ({0: 0, 1: 0}, "class 1 is needed, and nothing that was chosen makes it"),
        ({0: 0, 1: 1}, "class 0 would be made from itself"),
    ],
)
def test_what_leaves_something_open_is_no_solution(chosen, reason):
    """Not vacuous: class 1 can be made by itself, too, and then it is one."""
    problem = Problem((Choice(1.0, (0,), (1,)), Choice(1.0, (1,), (0,)), Choice(3.0, (1,), ())), (0,))
    with pytest.raises(GraphError, match=reason):
        problem.needed(chosen)
    assert not problem.is_solution(chosen)
    assert problem.is_solution({0: 0, 1: 2})


def test_a_class_that_two_read_is_no_loop():
    """A diamond whose bottom waits twice before it is looked at."""
    choices = (Choice(1.0, (0,), (1, 2)), Choice(1.0, (1,), (3,)), Choice(1.0, (2,), (3, 1)), Choice(1.0, (3,), ()))
    assert list(Problem(choices, (0,)).needed({0: 0, 1: 1, 2: 2, 3: 3})) == [3, 1, 2, 0]


@given(problems())
def test_what_can_be_derived_is_made_in_order(problem):
    """Every class comes after the operands of its choice, and none could be added."""
    derived = problem.derivable(range(len(problem.choices)))
    before: set[int] = set()
    for current, number in derived.items():
        assert current in problem.choices[number].made
        # Outputs of one choice come together: none is an operand of it.
        assert before.issuperset(c for c in problem.reads(number))
        before.add(current)
    for number, choice in enumerate(problem.choices):
        if before.issuperset(problem.reads(number)):
            assert before.issuperset(set(choice.made) - problem.given)


def test_the_gap_is_relative_to_the_objective():
    assert Solution({}, 8.0, bound_ms=6.0).gap_percent == 25.0
    assert Solution({}, 0.0).gap_percent == 0.0
