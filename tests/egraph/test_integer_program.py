"""The integer program admits every solution, and its relaxation and rows say what they should."""

import numpy as np
import pytest
from hypothesis import given, settings
from support.extraction_problems import problems, ring, solutions

from rlflow.egraph.integer_program import IntegerProgram, Loop
from rlflow.egraph.problem import Choice, Problem
from rlflow.egraph.pruning import pruned


def _program(problem: Problem, loops: tuple[Loop, ...] = ()) -> IntegerProgram:
    return IntegerProgram(problem, pruned(problem), unit_ms=1.0, loops=loops)


def _values(program: IntegerProgram, chosen: dict[int, int]) -> np.ndarray:
    """The columns of a solution."""
    needed = program.problem.needed(chosen)
    values = np.zeros(program.width)
    values[[program.x[number] for number in set(needed.values())]] = 1.0
    values[[program.y[c] for c in needed]] = 1.0
    return values


def _broken(program: IntegerProgram, values: np.ndarray) -> int:
    rows, bounds = (program.arguments()[name] for name in ("constraints", "bounds"))
    activity = rows.A @ values
    outside = (activity < rows.lb - 1e-9) | (activity > rows.ub + 1e-9)
    return int(outside.sum() + (values < bounds.lb).sum() + (values > bounds.ub).sum())


@given(problems())
@settings(max_examples=150)
def test_a_cheapest_solution_keeps_every_row(problem):
    """Rows may exclude what costs too much, such as two choices of one class, and never all cheapest solutions.

    Every set of classes that depend on each other may be forbidden as a loop: that excludes none.
    """
    program = _program(problem)
    if not program.is_possible:
        return
    everything = frozenset(program.makers)
    looped = _program(problem, tuple(Loop(c, everything) for c in problem.wanted))
    kept = [chosen for chosen in solutions(problem) if program.x.keys() >= set(chosen.values())]
    prices_ms = [problem.solved(chosen, "all").objective_ms for chosen in kept]
    cheapest = [chosen for chosen, price_ms in zip(kept, prices_ms, strict=True) if price_ms == min(prices_ms)]
    assert min(_broken(looped, _values(looped, chosen)) for chosen in cheapest) == 0


def test_a_landmark_is_needed_whole():
    """Half a choice of each kind would do with half of all that lies between, and needs all of what both need."""
    ways = (Choice(1.0, (0,), (1,)), Choice(1.0, (0,), (2,)), Choice(1.0, (1,), (3,)), Choice(1.0, (2,), (3,)))
    program = _program(Problem((*ways, Choice(5.0, (3,), ())), (0,)))
    values = np.zeros(program.width)
    values[[program.x[n] for n in range(4)]] = 0.5
    values[program.y[0]], values[program.y[1]], values[program.y[2]] = 1.0, 0.5, 0.5
    values[program.x[4]] = values[program.y[3]] = 0.5
    assert _broken(program, values) == 1
    values[program.x[4]] = values[program.y[3]] = 1.0
    assert _broken(program, values) == 0


@pytest.mark.parametrize("length", [3, 4, 6])
def test_a_broken_loop_is_found_and_forbidden(length):
    """All classes of a ring from each other keep every row at first; two that read each other need no loop."""
    program = _program(ring(length))
    values = np.zeros(program.width)
    values[[program.x[n] for n in range(length)]] = 1.0
    values[len(program.kept) :] = 1.0
    assert _broken(program, values) == 0
    loops = program.broken_loops(values, range(length), program.y)
    assert {loop.needed for loop in loops} == set(range(length))
    forbidden = IntegerProgram(program.problem, program.kept, 1.0, tuple(loops))
    assert _broken(forbidden, values) == length


def test_a_loop_of_a_class_that_nothing_makes_any_more_has_no_row():
    """Choices that are left out later may take the only maker of a class with them."""
    problem = Problem((Choice(1.0, (0,), ()), Choice(1.0, (1,), (2,)), Choice(1.0, (2,), ())), (0,))
    loop = Loop(1, frozenset({1, 2}))
    whole, smaller = (IntegerProgram(problem, kept, unit_ms=1.0, loops=(loop,)) for kept in ((0, 1, 2), (0,)))
    rows = [program.arguments()["constraints"].A.shape[0] for program in (whole, smaller)]
    without = [
        IntegerProgram(problem, kept, unit_ms=1.0).arguments()["constraints"].A.shape[0] for kept in ((0, 1, 2), (0,))
    ]
    assert [one - other for one, other in zip(rows, without, strict=True)] == [1, 0]


def test_two_classes_from_each_other_break_a_row():
    program = _program(ring(2))
    values = np.zeros(program.width)
    values[[program.x[0], program.x[1]]] = 1.0
    values[len(program.kept) :] = 1.0
    assert _broken(program, values) > 0


def test_prices_are_in_thousandths_of_the_unit_and_ranks_decide_between_equals():
    choices = (Choice(2.0, (0,), (1,), rank=3), Choice(4.0, (1,), ()))
    prices = IntegerProgram(Problem(choices, (0,)), [0, 1], unit_ms=8.0).arguments()["c"]
    assert prices[:2] == pytest.approx([250.0, 500.0])
    assert 0.0 < prices[0] - 250.0 < 1e-4
    assert list(prices[2:]) == [0.0, 0.0]
