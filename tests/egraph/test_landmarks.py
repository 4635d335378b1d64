"""Landmarks: what every way to make a class needs."""

from hypothesis import given, settings
from support.extraction_problems import problems, solutions

from rlflow.egraph.landmarks import Landmarks
from rlflow.egraph.problem import Choice, Problem
from rlflow.egraph.pruning import pruned


def _landmarks(problem: Problem) -> tuple[Landmarks, dict[int, list[int]]]:
    kept = pruned(problem)
    made = dict.fromkeys(c for n in kept for c in problem.choices[n].made if c not in problem.given)
    makers = {c: [n for n in kept if c in problem.choices[n].made and c not in problem.reads(n)] for c in made}
    return Landmarks(problem, makers), makers


def test_what_all_choices_need_is_a_landmark_though_none_reads_it():
    """Two ways from class 3 to the root, over 1 and over 2."""
    ways = (Choice(1.0, (0,), (1,)), Choice(1.0, (0,), (2,)))
    problem = Problem((*ways, Choice(1.0, (1,), (3,)), Choice(2.0, (2,), (3,)), Choice(1.0, (3,), ())), (0,))
    landmarks, makers = _landmarks(problem)
    assert landmarks.of(0) == {0, 3}
    assert landmarks.of_choice(0) == {1, 3}
    assert dict(landmarks.nearest(makers[0])) == {3: [0, 1], 1: [0], 2: [1]}
    assert landmarks.needing([2, 3, 4], 3) == [2, 3]


def test_a_loop_makes_nothing():
    """Class 1 may be made from 2 and 2 from 1, but something has to make one of them from 3."""
    around = (Choice(1.0, (0,), (1,)), Choice(1.0, (1,), (2,)), Choice(1.0, (2,), (1,)))
    problem = Problem((*around, Choice(9.0, (1,), (3,)), Choice(9.0, (2,), (3,)), Choice(1.0, (3,), ())), (0,))
    landmarks, _ = _landmarks(problem)
    assert landmarks.of(0) == {0, 1, 3}
    assert landmarks.of(2) == {2, 3}


def test_what_follows_from_a_nearer_landmark_is_not_told():
    """In a chain each class needs all below it, and only the next one is told."""
    chain = [Choice(1.0, (c,), (c + 1,)) for c in range(4)]
    landmarks, makers = _landmarks(Problem((*chain, Choice(1.0, (4,), ())), (0,)))
    assert landmarks.of(0) == {0, 1, 2, 3, 4}
    assert list(landmarks.nearest(makers[0])) == [(1, [0])]


@given(problems())
@settings(max_examples=150)
def test_every_solution_needs_the_landmarks_of_its_roots(problem):
    """Checked against all solutions of the choices that pruning left."""
    landmarks, makers = _landmarks(problem)
    kept = {n for members in makers.values() for n in members}
    for chosen in solutions(problem):
        if kept.issuperset(chosen.values()):
            needed = problem.needed(chosen)
            for current in problem.wanted:
                assert landmarks.of(current) <= needed.keys()
