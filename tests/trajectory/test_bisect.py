"""A rule that is wrong is found by the first graph that computes something else."""

from dataclasses import replace

import pytest
from support.wrong_rule import WRONG, differs_from, with_a_wrong_step

from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import to_onnx
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.bisect import first_wrong_step


@pytest.mark.parametrize(("right_before", "right_after"), [(0, 5), (3, 4), (6, 0), (0, 0)])
def test_the_wrong_step_is_found(bert, shipped, right_before, right_after):
    """First, in the middle, last and alone."""
    trajectory, rewriter = with_a_wrong_step(bert, shipped, right_before, right_after)
    assert len(trajectory.steps) == right_before + 1 + right_after
    found = first_wrong_step(bert, trajectory, rewriter, differs_from(bert))
    assert found is not None
    assert (found.number, found.step.rule, found.match.rule) == (right_before + 1, WRONG.id, WRONG)
    assert found.step is trajectory.steps[right_before]
    assert structural_hash(found.after) == found.step.hash


def test_the_wrong_step_is_found_among_those_of_sharing_matching(bert, shipped):
    trajectory, rewriter = with_a_wrong_step(bert, shipped, 3, 4, matching="sharing")
    assert trajectory.matching == "sharing"
    found = first_wrong_step(bert, trajectory, rewriter, differs_from(bert))
    assert (found.number, found.match.rule) == (4, WRONG)


def test_a_right_trajectory_has_no_wrong_step(bert, episode, shipped):
    rewriter, is_wrong = Rewriter(shipped.rules), differs_from(bert)
    assert first_wrong_step(bert, episode, rewriter, is_wrong) is None
    assert first_wrong_step(bert, replace(episode, steps=()), rewriter, is_wrong) is None


def test_halving_compares_logarithmically(bert, shipped):
    trajectory, rewriter = with_a_wrong_step(bert, shipped, 6, 8)
    calls, is_wrong = [], differs_from(bert)
    assert first_wrong_step(bert, trajectory, rewriter, lambda g: calls.append(1) or is_wrong(g)).number == 7
    assert len(calls) <= 1 + 4  # the end, then log2(15)


def test_the_values_that_it_replaced_are_named(bert, shipped):
    """By the names that they have in the model: so that a person finds them in a viewer."""
    trajectory, rewriter = with_a_wrong_step(bert, shipped, 0, 2)
    found = first_wrong_step(bert, trajectory, rewriter, differs_from(bert))
    (value,) = found.values
    (adder,) = [node for node in to_onnx(bert).graph.node if value in node.output]
    assert adder.op_type == "Add"
    for part in ("step 1", "rule lose-a-bias", WRONG.id, repr(value)):
        assert part in str(found)
