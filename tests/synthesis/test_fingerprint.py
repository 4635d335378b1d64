"""Fingerprints of many expressions at once are those of each alone."""

import numpy as np
import pytest

from rlflow.ops.field import FieldArray, FieldDomain
from rlflow.synthesis.fingerprint import Trials, stacked, taken

TRIALS = 5


@pytest.fixture
def trials() -> Trials:
    return Trials.draw(TRIALS, np.random.default_rng(0))


@pytest.fixture
def leaves(trials: Trials) -> list[FieldArray]:
    rng = np.random.default_rng(1)
    return [FieldDomain(trials.seeds).draw((3, 3), rng) for _ in range(4)]


@pytest.mark.parametrize(
    ("op", "attributes", "arity"),
    [
        ("Add", {}, 2),
        ("MatMul", {}, 2),
        ("Mul", {}, 2),
        ("Relu", {}, 1),
        ("Erf", {}, 1),
        ("Exp", {}, 1),
        ("Reciprocal", {}, 1),
        ("Transpose", {"perm": (1, 0)}, 1),
        ("Softmax", {"axis": -1}, 1),
    ],
)
def test_a_stack_is_evaluated_as_its_members(
    trials: Trials, leaves: list[FieldArray], op: str, attributes: dict[str, object], arity: int
) -> None:
    left, right = stacked(leaves), stacked(leaves[::-1])
    together = trials.evaluate(op, attributes, [left, right][:arity])  # type: ignore[arg-type]
    alone = [
        trials.evaluate(op, attributes, [a, b][:arity])  # type: ignore[arg-type]
        for a, b in zip(leaves, leaves[::-1], strict=True)
    ]
    assert trials.digests(together) == [trials.digests(value)[0] for value in alone]


def test_taking_members_of_a_stack(trials: Trials, leaves: list[FieldArray]) -> None:
    chosen = taken(stacked(leaves), np.array([2, 0, 2]), TRIALS)
    wanted = [trials.digests(leaves[i])[0] for i in (2, 0, 2)]
    assert trials.digests(chosen) == wanted


def test_one_different_element_in_one_trial_shows(trials: Trials, leaves: list[FieldArray]) -> None:
    residue = leaves[0].residue.copy()
    residue[-1, -1, -1] += 1
    changed = FieldArray(residue, leaves[0].exponent, leaves[0].undefined)
    assert trials.digests(changed) != trials.digests(leaves[0])


def test_where_a_value_is_undefined_is_part_of_it(trials: Trials, leaves: list[FieldArray]) -> None:
    undefined = np.zeros(leaves[0].residue.shape, dtype=bool)
    undefined[0, 0, 0] = True
    assert trials.digests(FieldArray(leaves[0].residue, leaves[0].exponent, undefined)) != trials.digests(leaves[0])


def test_a_variable_that_cancels_is_idle() -> None:
    """(a + b) - b depends on a alone; a + b and a b on both."""
    rng = np.random.default_rng(0)
    trials = Trials.draw(4, rng, variables=2)
    domain = FieldDomain(trials.seeds)
    a, b = (trials.leaf(number, domain.draw((2, 2), rng)) for number in range(2))
    total = domain.add(a, b)
    stack = stacked([total, domain.subtract(total, b), domain.multiply(a, b)])
    assert trials.idle(stack).tolist() == [[False, False], [False, True], [False, False]]


def test_points_for_single_variables_leave_the_others_alone() -> None:
    """Four independent points, a fifth, and one more for each variable that differs from the fifth in it alone."""
    trials = Trials.draw(4, np.random.default_rng(0), variables=2)
    numbers = FieldArray(np.arange(7).reshape(7, 1))
    assert trials.independent == 4
    assert trials.leaf(0, numbers).residue.ravel().tolist() == [0, 1, 2, 3, 4, 5, 4]
    assert trials.leaf(1, numbers).residue.ravel().tolist() == [0, 1, 2, 3, 4, 4, 5]
