"""The smallest pair that shows a fault, and what is written where there is no step to blame."""

from dataclasses import replace

import numpy as np
import pytest
from support.contents import contents
from support.derivations import derivation
from support.drawn_inputs import drawn_inputs

from rlflow.equivalence.compare import compare
from rlflow.errors import EquivalenceError
from rlflow.onnx_io import to_onnx
from rlflow.optimise.gate import GateConfig, check
from rlflow.optimise.reproducer import Pair, smallest_pair, write
from rlflow.trajectory.bisect import first_wrong_step


def wrong_step(made):
    def is_wrong(graph):
        return not compare(made.original, to_onnx(graph)).equivalent

    return first_wrong_step(made.graph, made.trajectory, made.rewriter, is_wrong)


def test_the_match_alone_on_the_values_that_it_meets():
    """Before it everything is made larger than 5: drawn inputs of the match alone would not look like that."""
    nodes = [("Abs", ["x"], ["a"]), ("Add", ["a", "five"], ["b"]), ("Neg", ["b"], ["n"]), ("Relu", ["n"], ["r"])]
    made = derivation([*nodes, ("Sub", ["r", "x"], ["y"])], {"five": np.float32(5)})
    pair = smallest_pair(wrong_step(made), drawn_inputs(made.original))
    assert [node.op_type for node in pair.before.graph.node] == ["Neg", "Relu"]
    assert [node.op_type for node in pair.after.graph.node] == ["Neg"]
    assert pair.inputs["value_0"].min() >= 5
    assert not compare(pair.before, pair.after, inputs=[pair.inputs]).equivalent


def test_the_whole_models_where_the_match_alone_shows_nothing():
    """On inputs below zero nothing is lost with the Relu: the match alone would prove nothing to a person."""
    made = derivation([("Neg", ["x"], ["n"]), ("Relu", ["n"], ["y"])], {})
    wrong = wrong_step(made)
    below = {"x": -np.ones((4, 8), np.float32)}
    pair, whole = smallest_pair(wrong, drawn_inputs(made.original)), smallest_pair(wrong, [below])
    assert (pair.before_is, whole.before_is) == ("the nodes that the step matched", "the whole model before the step")
    assert [value.name for value in whole.before.graph.input] == ["x"]
    assert whole.inputs is below


def test_a_reproducer_is_the_same_twice_and_replaces_an_older_one(tmp_path):
    made = derivation([("Neg", ["x"], ["n"]), ("Relu", ["n"], ["y"])], {})
    folder, found = tmp_path / "r", []
    for _ in range(2):
        with pytest.raises(EquivalenceError, match="replacing 'y'"):
            check(made, GateConfig(), folder)
        found.append(contents(folder))
    assert found[0] == found[1]
    assert len(found[0]) == 5
    with pytest.raises(EquivalenceError, match="no step"):
        check(replace(made, trajectory=replace(made.trajectory, steps=())), GateConfig(), folder)
    assert not (folder / "trajectory.jsonl").exists(), "it would belong to another fault"


def test_inputs_of_any_name_can_be_written(tmp_path):
    """`file` is what numpy calls its own argument, and a slash is common in names of values."""
    inputs = {"file": np.arange(3), "scope/x": np.float32(1.5)}
    model = derivation([("Neg", ["x"], ["n"]), ("Relu", ["n"], ["y"])], {}).original
    write(tmp_path / "r", "why", Pair(model, model, inputs, "", ""))
    with np.load(tmp_path / "r" / "inputs.npz") as arrays:
        assert set(arrays) == set(inputs)
        for name, values in inputs.items():
            np.testing.assert_array_equal(arrays[name], values)


def test_an_equivalent_candidate_writes_nothing(tmp_path):
    made = derivation([("Neg", ["x"], ["n"]), ("Relu", ["n"], ["y"])], {})
    assert check(replace(made, candidate=made.original), GateConfig(), tmp_path / "r").equivalent
    assert not (tmp_path / "r").exists()
