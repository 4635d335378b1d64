"""A rule that is wrong is found by the first graph that computes something else."""

from dataclasses import replace

import pytest

from rlflow.cost.analytic import AnalyticCost
from rlflow.optimiser import Budget, Workspace
from rlflow.rules.rewriter import Rewriter
from rlflow.rules.rule import declare
from rlflow.trajectory import bisect
from rlflow.trajectory.bisect import first_wrong_step

# Looks like a rule that merges two biases, and loses one of them. No certificate: it could not be in a library.
WRONG = declare(
    "lose-a-bias",
    "linear",
    [["Add", ["MatMul", "x", "w"], "c"]],
    [["MatMul", "x", "w"]],
    {"c": {"shape": ["n"], "constant": True}},
)


def with_a_wrong_step(bert, shipped, right_before, right_after):
    """Right steps, the wrong one, right steps."""
    rewriter = Rewriter([*shipped.rules, WRONG])
    work = Workspace.begin(bert, rewriter, AnalyticCost(), "none", Budget(expansions=1))

    def right(state):
        actions = [a for a in work.actions(state) if a.rule < len(shipped.rules)]
        return work.step(state, actions[len(actions) // 2])

    state = work.start
    for _ in range(right_before):
        state = right(state)
    wrong = [a for a in work.actions(state) if a.rule == len(shipped.rules)]
    state = work.step(state, wrong[-1])
    for _ in range(right_after):
        state = right(state)
    return work.result(state).trajectory, rewriter


@pytest.mark.parametrize(("right_before", "right_after"), [(0, 5), (3, 4), (6, 0), (0, 0)])
def test_the_wrong_step_is_found(bert, shipped, right_before, right_after):
    """First, in the middle, last and alone."""
    trajectory, rewriter = with_a_wrong_step(bert, shipped, right_before, right_after)
    assert len(trajectory.steps) == right_before + 1 + right_after
    found = first_wrong_step(bert, trajectory, rewriter)
    assert found is not None
    number, step = found
    assert (number, step.rule) == (right_before + 1, WRONG.id)
    assert step is trajectory.steps[right_before]


def test_a_right_trajectory_has_no_wrong_step(bert, episode, shipped):
    assert first_wrong_step(bert, episode, Rewriter(shipped.rules)) is None
    assert first_wrong_step(bert, replace(episode, steps=()), Rewriter(shipped.rules)) is None


def test_halving_compares_logarithmically(bert, shipped, monkeypatch):
    trajectory, rewriter = with_a_wrong_step(bert, shipped, 6, 8)
    calls = []
    original = bisect.compare
    monkeypatch.setattr(bisect, "compare", lambda *a, **k: calls.append(1) or original(*a, **k))
    assert first_wrong_step(bert, trajectory, rewriter)[0] == 7
    assert len(calls) <= 1 + 4  # the end, then log2(15)
