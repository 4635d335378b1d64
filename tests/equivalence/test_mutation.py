"""Mutants: one fault each, in every operator that runs, and none that is known to change nothing."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.small_models import FLOAT

from rlflow.equivalence.mutation import faults
from rlflow.ops import neighbours
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import open_session, run
from rlflow.zoo import build

STORED = {
    "zero": np.float32(0),
    "one": np.float32(1),
    "two": np.float32(2),
    "tiny": np.float32(1e-6),
    "huge": np.float32(3e38),
}


@pytest.fixture
def told(make_model):
    """The faults of x (2, 8) through operators (type, other operands), as texts."""

    def listed(*steps, opset=17):
        values = ["x", *(f"v{i}" for i in range(1, len(steps))), "y"]
        nodes = [
            helper.make_node(kind, [values[k], *others], [values[k + 1]], **attributes)
            for k, (kind, others, attributes) in enumerate(steps)
        ]
        stored = {name: np.asarray(value) for name, value in STORED.items()}
        model = make_model(nodes, [("x", FLOAT, [2, 8])], [("y", FLOAT, None)], stored, opset=opset)
        return [fault.what for fault in faults(model)]

    return listed


def test_an_operator_is_left_out_swapped_and_its_bounds_are_moved(told):
    assert told(("Clip", ["one", "two"], {})) == ["Clip left out", "1 became 0.5", "2 became 3"]
    assert told(("Add", ["two"], {})) == ["Add left out", "Add became Sub"]
    assert told(("HardSigmoid", [], {"alpha": 0.25, "beta": 0.5})) == [
        "HardSigmoid left out",
        "HardSigmoid became Sigmoid",
        "0.25 became 0.75",
        "0.5 became 1",
    ]


@pytest.mark.parametrize(
    "step",
    [
        ("Identity", [], {}),
        ("Add", ["zero"], {}),
        ("Mul", ["one"], {}),
        ("Add", ["tiny"], {}),
        ("Max", [], {}),
        ("Flatten", [], {}),
    ],
    ids=lambda step: f"{step[0]} {step[1]}",
)
def test_what_changes_nothing_is_no_fault(told, step):
    """So its result is negated, which shows."""
    assert told(step) == [f"result of {step[0]} negated"]


def test_what_is_never_negative_needs_no_relu(told):
    assert told(("Sigmoid", [], {}), ("Relu", [], {}))[2:] == ["result of Relu negated"]
    assert told(("Clip", ["zero", "two"], {}), ("Transpose", [], {"perm": [1, 0]}), ("Relu", [], {}))[-1:] == [
        "result of Relu negated"
    ]
    assert "Relu left out" in told(("Tanh", [], {}), ("Relu", [], {}))


def test_a_bound_that_bounds_nothing_is_not_moved(told):
    assert told(("Clip", ["zero", "huge"], {})) == ["Clip left out", "0 became -0.5"]


def test_increasing_functions_before_a_question_for_the_largest(told):
    assert told(("Softmax", [], {}), ("ArgMax", [], {}))[:1] == ["result of Softmax negated"]
    assert told(("Softmax", [], {}), ("ReduceMax", [], {}))[:2] == ["Softmax left out", "Softmax became LogSoftmax"]


def test_neighbours_take_the_same_operands_in_the_models_opset(told):
    """From opset 13 on the axes of a ReduceSum are an operand, and those of a ReduceMean are it from 18 on."""
    assert "ReduceMean became ReduceMax" in told(("ReduceMean", [], {"axes": [1]}), opset=17)
    assert "ReduceMean became ReduceSum" in told(("ReduceMean", [], {"axes": [1]}), opset=12)


def test_nobody_mutates_what_nobody_reads(make_model):
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Exp", ["x"], ["unread"])]
    model = make_model(nodes, [("x", FLOAT, [4])], [("y", FLOAT, [4])])
    assert {fault.what.split()[0] for fault in faults(model)} == {"Relu"}


def test_branches_have_mutants(make_model):
    def branch(kind):
        output = helper.make_tensor_value_info(kind, FLOAT, [4])
        return helper.make_graph([helper.make_node(kind, ["x"], [kind])], kind, [], [output])

    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("Tanh"), else_branch=branch("Neg"))
    model = make_model([node], [("x", FLOAT, [4]), ("c", TensorProto.BOOL, [])], [("y", FLOAT, [4])])
    found = faults(model)
    assert [str(fault) for fault in found] == [
        "Neg of 'Neg' (Neg left out)",
        "Tanh of 'Tanh' (Tanh left out)",
        "Tanh of 'Tanh' (Tanh became Sigmoid)",
    ]
    x = np.array([1, -2, 3, -4], np.float32)
    for fault, condition, expected in zip(found, (False, True, True), (x, x, 1 / (1 + np.exp(-x))), strict=True):
        session = open_session(fault.planted_in(model), "as_written")
        np.testing.assert_allclose(run(session, {"x": x, "c": np.array(condition)})["y"], expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["conv", "tiny_transpose", "loop"])
def test_a_mutant_is_a_copy_and_nearly_all_run(name):
    model = build(name)
    before = model.SerializeToString()
    found = faults(model)
    inputs = draw_inputs(model, np.random.default_rng(0))
    for fault in found:
        mutant = fault.planted_in(model)
        assert mutant.SerializeToString() != before
        assert set(run(open_session(mutant, "as_written"), inputs)) == {output.name for output in model.graph.output}
    assert model.SerializeToString() == before
    assert len(found) >= 6


@pytest.mark.parametrize("element", ["uint8", "int16", "uint64", "bool", "int32"])
def test_the_opposite_of_any_number(make_model, element):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(element))
    model = make_model([helper.make_node("Identity", ["x"], ["y"])], [("x", kind, [3])], [("y", kind, [3])])
    (fault,) = faults(model)
    x = np.array([1, 0, 1]).astype(element)
    found = run(open_session(fault.planted_in(model), "as_written"), {"x": x})["y"]
    np.testing.assert_array_equal(found, ~x if element == "bool" else (0 - x).astype(element))


def test_numbers_of_nodes_are_known_as_weights_are(make_model):
    six = numpy_helper.from_array(np.float32(6))
    for attributes in ({"value": six}, {"value_float": 6.0}):
        nodes = [helper.make_node("Constant", [], ["c"], **attributes), helper.make_node("Min", ["x", "c"], ["y"])]
        model = make_model(nodes, [("x", FLOAT, [4])], [("y", FLOAT, [4])])
        assert [fault.what for fault in faults(model)] == ["Min left out", "Min became Max", "6 became 9"]


def test_the_table_of_neighbours_names_operators():
    """Not vacuous: nobody is their own neighbour, and a misspelt name would be no neighbour of anything."""
    schemas = {schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
    table = neighbours.NEIGHBOURS
    assert {*table, *(n for near in table.values() for n in near)} <= schemas
    assert all(name not in near for name, near in table.items())
    named = (neighbours.INERT, neighbours.ALONE, neighbours.OF_ONE, neighbours.NEVER_NEGATIVE, neighbours.ORDERLY)
    assert {name for names in named for name in names} <= schemas
    assert {*neighbours.BOUNDS, *neighbours.NEUTRAL, *neighbours.AT_LEAST, *neighbours.ON_EQUALITY} <= schemas
