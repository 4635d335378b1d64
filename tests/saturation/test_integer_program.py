"""The integer program: its rows admit the solutions of a problem, and none that makes classes from each other alone."""

from __future__ import annotations

from itertools import islice

import numpy as np
from hypothesis import given, settings
from support.extraction_problems import problems, solutions

from rlflow.saturation.integer_program import IntegerProgram, Loop
from rlflow.saturation.problem import Choice, Problem
from rlflow.saturation.pruning import useful

# The root reads class 1, which is made from class 2 and class 2 from it, for nothing, or from nothing for 5.
CIRCLE = Problem(
    (Choice(1.0, (0,), (1,)), Choice(0.0, (1,), (2,)), Choice(0.0, (2,), (1,)), Choice(5.0, (2,), ())), (0,)
)


def _program(problem: Problem, loops: tuple[Loop, ...] = ()) -> IntegerProgram:
    numbers = range(len(problem.choices))
    sensible = [n for n in numbers if not set(problem.choices[n].made) <= set(problem.reads(n))]
    return IntegerProgram(problem, useful(problem, sensible), 1.0, loops)


def _point(program: IntegerProgram, chosen: dict[int, int]) -> np.ndarray:
    """The values of x and y that stand for a solution."""
    values = np.zeros(program.width)
    values[[program.x[number] for number in chosen.values()]] = 1.0
    made = {c for number in chosen.values() for c in program.problem.choices[number].made}
    values[[program.y[c] for c in made & program.y.keys()]] = 1.0
    return values


def _admits(program: IntegerProgram, values: np.ndarray) -> bool:
    arguments = program.arguments()
    bounds, rows = arguments["bounds"], arguments["constraints"]
    forms = rows.A @ values
    inside = (bounds.lb <= values).all() and (values <= bounds.ub).all()
    return bool(inside and (rows.lb - 1e-9 <= forms).all() and (forms <= rows.ub + 1e-9).all())


@settings(deadline=None)  # scipy is imported by the first
@given(problems())
def test_the_price_of_a_solution_is_that_of_its_point(problem: Problem):
    program = _program(problem)
    inside = (s for s in solutions(problem) if program.x.keys() >= set(s.values()))
    for chosen in islice(inside, 5):
        price = program.arguments()["c"] @ _point(program, chosen)
        expected = problem.solved(chosen, "drawn").objective_ms * program.scale
        assert abs(price - expected) <= 1e-2  # ranks decide between equals alone


def test_the_only_acyclic_solution_of_a_circle_is_admitted():
    assert _admits(_program(CIRCLE), _point(_program(CIRCLE), {0: 0, 1: 1, 2: 3}))


def test_a_circle_is_refused_without_further_rows_as_two_classes_are_in_the_first_ones():
    program = _program(CIRCLE)
    assert not _admits(program, _point(program, {0: 0, 1: 1, 2: 2}))


def test_a_longer_circle_is_found_broken_and_refused():
    around = tuple(Choice(0.0, (c,), (c % 3 + 1,)) for c in (1, 2, 3))
    problem = Problem((Choice(1.0, (0,), (1,)), *around, Choice(5.0, (3,), ())), (0,))
    program = _program(problem)
    values = _point(program, {0: 0, 1: 1, 2: 2, 3: 3})
    loops = program.broken_loops(values, (0, 1, 2, 3), (0, 1, 2, 3))
    assert {frozenset({1, 2, 3})} == {loop.classes for loop in loops}
    assert not _admits(_program(problem, tuple(loops)), values)


def test_what_nothing_makes_is_impossible():
    assert not _program(Problem((Choice(1.0, (0,), (1,)),), (1,))).is_possible
    assert _program(CIRCLE).is_possible
