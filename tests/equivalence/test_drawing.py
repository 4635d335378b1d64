"""Inputs of a comparison: drawn where faults show, anew where none could, and others where a model refuses them."""

import time

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.small_models import FLOAT

from rlflow.equivalence.compare import compare
from rlflow.equivalence.difference import is_informative
from rlflow.equivalence.drawing import Drawing
from rlflow.equivalence.reference import run_original
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.runtimes import open_model

INT64 = TensorProto.INT64


def reference_of(model, **settings):
    return run_original(model, open_model(model, "as_written"), **settings)


def test_the_inputs_of_a_seed_do_not_depend_on_how_many_there_are(make_dense):
    """So that more can be added later."""
    model = make_dense()
    session = open_model(model, "as_written")
    few, many = reference_of(model, draws=2, seed=4), reference_of(model, draws=4, seed=4)
    Drawing(model, 4).add(few, session, 2)
    Drawing(model, 4).add(few, session, 3)
    for left, right in zip(few.inputs, many.inputs, strict=True):
        np.testing.assert_array_equal(left["x"], right["x"])
    assert len({each["x"].tobytes() for each in many.inputs}) == 4


@pytest.mark.parametrize(
    ("nodes", "output"),
    [
        (["Greater", "Cast"], INT64),
        (["Div"], INT64),
        (["Max"], INT64),
        (["BitwiseAnd"], INT64),
        (["Equal", "Cast"], INT64),
    ],
    ids=lambda nodes: nodes[0] if isinstance(nodes, list) else "",
)
def test_whole_numbers_are_drawn_until_outputs_differ(make_model, nodes, output):
    """Not vacuous: of the ordinary numbers 1 to 4 each of these makes a constant."""
    settings = {"Cast": {"to": INT64}}
    names = ["x", *(f"v{k}" for k in range(1, len(nodes))), "y"]
    made = [
        helper.make_node(kind, [names[k], "c"] if not k else [names[k]], [names[k + 1]], **settings.get(kind, {}))
        for k, kind in enumerate(nodes)
    ]
    model = make_model(made, [("x", INT64, [16])], [("y", output, [16])], {"c": np.array(1024)}, opset=18)
    session = open_model(model, "as_written")
    ordinary = [session.run(draw_inputs(model, np.random.default_rng(seed))) for seed in range(5)]
    assert not any(map(is_informative, ordinary))
    assert compare(model, model).non_vacuous_draws > 0


def test_numbers_become_larger_where_outputs_are_constant(make_model):
    """Half of a count to the whole: 1 to 4 times 0.01 are 0; how often a tensor is repeated is no number to be wild."""
    nodes = [
        helper.make_node("Tile", ["x", "times"], ["t"]),
        helper.make_node("Mul", ["t", "c"], ["m"]),
        helper.make_node("Floor", ["m"], ["y"]),
    ]
    inputs = [("x", FLOAT, [2]), ("times", INT64, [1])]
    model = make_model(nodes, inputs, [("y", FLOAT, None)], {"c": np.array(1e-2, np.float32)})
    reference = reference_of(model)
    assert reference.tell
    assert all(0 < each["times"][0] < 1024 for each in reference.inputs)


def test_a_larger_size_may_tell_what_a_small_one_does_not(make_model):
    """The sum of fewer than ten ones is no ten."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Cast", ["s"], ["f"], to=FLOAT),
        helper.make_node("Greater", ["f", "c"], ["g"]),
        helper.make_node("Cast", ["g"], ["k"], to=FLOAT),
        helper.make_node("Mul", ["x", "k"], ["y"]),
    ]
    model = make_model(nodes, [("x", FLOAT, ["n"])], [("y", FLOAT, ["n"])], {"c": np.array([10], np.float32)})
    reference = reference_of(model)
    assert reference.tell
    assert reference.inputs[0]["x"].shape == (16,)


def test_what_a_model_refuses_gives_way_to_ordinary_numbers(make_model):
    """No schema of a foreign operator says that its numbers are rows of a table that another node makes."""
    nodes = [
        helper.make_node("Relu", ["table"], ["rows"]),
        helper.make_node("Add", ["x", "zero"], ["k"]),
        helper.make_node("Mul", ["k", "k"], ["index"]),
        helper.make_node("Gather", ["rows", "index"], ["y"]),
    ]
    stored = {"table": np.arange(40, dtype=np.float32).reshape(20, 2), "zero": np.array(0)}
    model = make_model(nodes, [("x", INT64, [5])], [("y", FLOAT, [5, 2])], stored)
    reference = reference_of(model, draws=6)
    assert len(reference.inputs) == 6
    assert reference.tell


def test_exceptional_inputs_come_on_top(make_model):
    model = make_model([helper.make_node("Tanh", ["x"], ["y"])], [("x", FLOAT, [12])], [("y", FLOAT, [12])])
    assert reference_of(model).exceptional == [False] * 3
    reference = reference_of(model, exceptional=True)
    assert reference.exceptional == [False] * 3 + [True] * 3
    found = [{float(v) for v in each["x"] if not np.isfinite(v)} for each in reference.inputs[3:]]
    assert np.isnan(list(found[0])).all()
    assert found[1:] == [{np.inf}, {-np.inf}]
    report = compare(model, model, exceptional=True)
    assert (report.draws, report.non_vacuous_draws, report.exceptional_draws) == (3, 3, 3)


def test_when_time_is_over_nothing_is_drawn_but_the_first(make_model):
    node = helper.make_node("Sub", ["x", "x"], ["y"])
    model = make_model([node], [("x", FLOAT, ["n"])], [("y", FLOAT, ["n"])])
    runs = Drawing(model).runs(open_model(model, "as_written"), 3, {}, time.perf_counter(), exceptional=False)
    assert len(runs.inputs) == 1
    assert not runs.tell
