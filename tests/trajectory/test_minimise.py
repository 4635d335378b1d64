"""Of a trajectory that goes wrong, the steps that matter remain."""

import random
from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.wrong_rule import differs_from, with_a_wrong_step

from rlflow.cost.analytic import AnalyticCost
from rlflow.errors import ReplayError
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Budget, Ledger, Workspace
from rlflow.onnx_io import from_onnx
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import rule_from_json
from rlflow.trajectory.minimise import minimise
from rlflow.trajectory.replay import replay

CANCEL = rule_from_json("cancel", "algebra", [["Neg", ["Neg", "x"]]], ["x"], {})
SWAP = rule_from_json("swap", "algebra", [["Relu", ["Neg", "x"]]], [["Neg", ["Relu", "x"]]], {})
LANES = 12


def lanes(operators, count=LANES):
    """`count` inputs, each through the operators to an output of its own."""
    nodes, inputs, outputs = [], [], []
    for lane in range(count):
        names = [f"x{lane}", *(f"v{lane}_{i}" for i in range(1, len(operators))), f"y{lane}"]
        nodes += [
            helper.make_node(operator, [names[i]], [names[i + 1]], name=f"n{lane}_{i}")
            for i, operator in enumerate(operators)
        ]
        inputs.append(helper.make_tensor_value_info(names[0], TensorProto.FLOAT, [lane + 1]))
        outputs.append(helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, [lane + 1]))
    graph = helper.make_graph(nodes, "lanes", inputs, outputs)
    return from_onnx(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]))


def recorded(graph, rewriter, seed=0):
    """Random steps until none is left."""
    work = Workspace.begin(graph, rewriter, AnalyticCost(), "0123456789abcdef", Ledger(Budget(expansions=1)))
    rng, state = random.Random(seed), work.start
    while actions := work.actions(state):
        state = work.step(state, rng.choice(actions))
    return work.result(state).trajectory


def is_bare(*wanted):
    """Whether these lanes hold no operator any more."""
    return lambda graph: all(graph.nodes[graph.outputs[lane].node].op == "Input" for lane in wanted)


def operators(graph, lane):
    """Of one lane, from input to output."""
    found, node = [], graph.nodes[graph.outputs[lane].node]
    while node.op != "Input":
        found.append(node.op)
        node = graph.nodes[node.inputs[0].node]
    return found[::-1]


def end(graph, trajectory, rewriter):
    *_, last = replay(graph, trajectory, rewriter)
    return last


@pytest.mark.parametrize("seed", range(5))
def test_of_twelve_rewrites_the_two_that_matter_together_remain(seed):
    """Each lane is one rewrite, in random order; the graph counts as wrong if lanes 3 and 7 are both rewritten."""
    graph, rewriter = lanes(["Neg", "Neg"]), Rewriter([CANCEL])
    trajectory = recorded(graph, rewriter, seed)
    assert len(trajectory.steps) == LANES
    calls = []
    shortest = minimise(graph, trajectory, rewriter, lambda g: calls.append(1) or is_bare(3, 7)(g))
    assert len(shortest.steps) == 2
    last = end(graph, shortest, rewriter)
    assert [lane for lane in range(LANES) if is_bare(lane)(last)] == [3, 7]
    assert len(calls) < 60, "all pairs alone would be 66"


def test_a_step_is_found_again_where_its_number_has_changed():
    """Lanes are taken from the first to the last, so that each is location 0 when its turn comes, but not alone."""
    graph, rewriter = lanes(["Neg", "Neg"]), Rewriter([CANCEL])
    work = Workspace.begin(graph, rewriter, AnalyticCost(), "0123456789abcdef", Ledger(Budget(expansions=1)))
    state = work.start
    for _ in range(LANES):
        state = work.step(state, work.actions(state)[0])
    trajectory = work.result(state).trajectory
    assert {step.location for step in trajectory.steps} == {0}
    shortest = minimise(graph, trajectory, rewriter, is_bare(5))
    assert [step.location for step in shortest.steps] == [5]


def test_steps_that_others_stand_on_are_kept():
    """Neg four times over: what the second step matches is what the first left. Both remain, of one lane."""
    graph, rewriter = lanes(["Neg"] * 4, count=4), Rewriter([CANCEL])
    for seed in range(5):
        trajectory = recorded(graph, rewriter, seed)
        assert len(trajectory.steps) == 8
        shortest = minimise(graph, trajectory, rewriter, is_bare(2))
        assert len(shortest.steps) == 2
        assert is_bare(2)(end(graph, shortest, rewriter))


def test_values_that_a_step_made_are_found_again():
    """Relu(Neg(Neg(x))) becomes Neg(Neg(Relu(x))) in two steps; the second one matches what the first made."""
    graph, rewriter = lanes(["Neg", "Neg", "Relu"], count=3), Rewriter([SWAP])
    for seed in range(5):
        trajectory = recorded(graph, rewriter, seed)
        assert len(trajectory.steps) == 6
        relu_first = minimise(graph, trajectory, rewriter, lambda g: operators(g, 1) == ["Relu", "Neg", "Neg"])
        halfway = minimise(graph, trajectory, rewriter, lambda g: operators(g, 1)[-1] == "Neg")
        assert (len(relu_first.steps), len(halfway.steps)) == (2, 1)


def test_nothing_to_minimise_is_refused_and_nothing_at_all_is_the_shortest():
    graph, rewriter = lanes(["Neg", "Neg"]), Rewriter([CANCEL])
    trajectory = recorded(graph, rewriter)
    with pytest.raises(ReplayError, match="nothing to minimise"):
        minimise(graph, trajectory, rewriter, lambda graph: False)
    assert minimise(graph, trajectory, rewriter, lambda graph: True).steps == ()
    steps = tuple(replace(s, hash="0" * 16) if i == 3 else s for i, s in enumerate(trajectory.steps))
    with pytest.raises(ReplayError, match="step 4 led to"):
        minimise(graph, replace(trajectory, steps=steps), rewriter, is_bare(3))


@pytest.mark.parametrize("matching", ["private", "sharing"])
def test_the_result_is_a_trajectory_like_any_other_and_always_the_same(bert, shipped, matching):
    """A wrong rule between nine right ones on a real model: it alone remains, and replays to its hash."""
    trajectory, rewriter = with_a_wrong_step(bert, shipped, 5, 4, matching)
    first, second = (minimise(bert, trajectory, rewriter, differs_from(bert)) for _ in range(2))
    assert first == second
    assert [step.rule for step in first.steps] == [trajectory.steps[5].rule]
    assert structural_hash(end(bert, first, rewriter)) == first.steps[-1].hash
    assert (first.start_hash, first.matching) == (trajectory.start_hash, matching)
    assert np.isfinite([step.runtime_ms for step in first.steps]).all()


def test_on_a_real_model_what_a_graph_needs_remains(bert, shipped, episode):
    """The end of a random episode is reached by its own steps only: none can be left out but those that were undone."""
    rewriter = Rewriter(shipped.rules)
    wanted = structural_hash(end(bert, episode, rewriter))
    kept = minimise(bert, episode, rewriter, lambda graph: structural_hash(graph) == wanted)
    assert 0 < len(kept.steps) <= len(episode.steps)
    assert kept.steps[-1].hash == wanted
    assert structural_hash(end(bert, kept, rewriter)) == wanted
