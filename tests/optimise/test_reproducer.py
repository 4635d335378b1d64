"""The smallest pair that shows a fault, and what is written where there is no step to blame."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from rlflow.cost.analytic import AnalyticCost
from rlflow.equivalence.compare import compare, drawn_inputs
from rlflow.errors import EquivalenceError
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.optimise.diagnose import Derivation
from rlflow.optimise.gate import GateConfig, check
from rlflow.optimise.reproducer import Pair, smallest_pair, write
from rlflow.optimiser import Budget, Workspace
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import declare
from rlflow.trajectory.bisect import first_wrong_step

FLOAT = TensorProto.FLOAT
LOSE_A_RELU = declare("lose-a-relu", "algebra", [["Relu", ["Neg", "x"]]], [["Neg", "x"]], {})


def derivation(nodes, stored):
    """A model from x (4, 8) to y, and what the wrong rule makes of it in one step."""
    graph = helper.make_graph(
        [helper.make_node(*node) for node in nodes],
        "g",
        [helper.make_tensor_value_info("x", FLOAT, [4, 8])],
        [helper.make_tensor_value_info("y", FLOAT, [4, 8])],
        [numpy_helper.from_array(value, name) for name, value in stored.items()],
    )
    original = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    start, rewriter = from_onnx(original), Rewriter([LOSE_A_RELU])
    work = Workspace.begin(start, rewriter, AnalyticCost(), "0123456789abcdef", Budget(expansions=1))
    state = work.step(work.start, work.actions(work.start)[0])
    return Derivation(original, to_onnx(state.graph), start, work.result(state).trajectory, rewriter)


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
    assert pair.inputs["value_0"].min() > 5
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


def test_where_no_step_is_wrong_import_or_export_is(tmp_path):
    """An exporter that spoils a weight; both whole models are written, and no trajectory."""
    made = derivation(
        [("Mul", ["x", "two"], ["n"]), ("Neg", ["n"], ["m"]), ("Relu", ["m"], ["y"])], {"two": np.float32(2)}
    )
    spoiled = onnx.ModelProto()
    spoiled.CopyFrom(made.original)
    spoiled.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.float32(2.5), "two"))
    nothing_done = replace(made, candidate=spoiled, trajectory=replace(made.trajectory, steps=()))
    folder = tmp_path / "out.onnx.reproducer"
    with pytest.raises(EquivalenceError, match="it broke at import or export: no step changes what it computes"):
        check(nothing_done, GateConfig(), folder)
    assert {path.name for path in folder.iterdir()} == {"README.txt", "before.onnx", "after.onnx", "inputs.npz"}
    with np.load(folder / "inputs.npz") as arrays:
        inputs = dict(arrays)
    assert not compare(folder / "before.onnx", folder / "after.onnx", inputs=[inputs]).equivalent
    assert "rlflow replay" not in (folder / "README.txt").read_text()


def test_a_reproducer_is_the_same_twice_and_replaces_an_older_one(tmp_path):
    made = derivation([("Neg", ["x"], ["n"]), ("Relu", ["n"], ["y"])], {})
    folder, contents = tmp_path / "r", []
    for _ in range(2):
        with pytest.raises(EquivalenceError, match="replacing 'y'"):
            check(made, GateConfig(), folder)
        contents.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert contents[0] == contents[1]
    assert len(contents[0]) == 5
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
