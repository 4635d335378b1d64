import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.inputs import draw_inputs, symbolic_dimensions
from rlflow.runtime.session import open_session, run

ELEMENTS = {
    TensorProto.FLOAT: np.float32,
    TensorProto.DOUBLE: np.float64,
    TensorProto.FLOAT16: np.float16,
    TensorProto.INT64: np.int64,
    TensorProto.INT32: np.int32,
    TensorProto.INT8: np.int8,
    TensorProto.UINT8: np.uint8,
    TensorProto.BOOL: np.bool_,
}


def draw(model, seed=0, dimensions=None, **settings):
    return draw_inputs(model, np.random.default_rng(seed), dimensions, **settings)


def identity(make_model, name="x", element=TensorProto.FLOAT, shape=(3,)):
    return make_model([helper.make_node("Identity", [name], ["y"])], [(name, element, shape)], [("y", element, shape)])


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (1, 4, 2)])
def test_type_and_shape_are_those_declared(make_model, element, shape):
    model = identity(make_model, element=element, shape=shape)
    array = draw(model)["x"]
    assert (array.dtype, array.shape) == (ELEMENTS[element], shape)
    np.testing.assert_array_equal(run(open_session(model, "as_written"), {"x": array})["y"], array)


def test_same_seed_same_inputs_and_another_seed_others(make_model):
    model = identity(make_model, shape=(50,))
    np.testing.assert_array_equal(draw(model, 3)["x"], draw(model, 3)["x"])
    assert (draw(model, 3)["x"] != draw(model, 4)["x"]).any()


@pytest.mark.parametrize("kind", ["ConstantOfShape", "Expand", "Reshape"])
def test_the_shape_of_a_result_is_the_declared_one(make_model, kind):
    """Any other would make of a fragment something that its model never computes, or that does not run."""
    inputs = [("s", TensorProto.INT64, [3])]
    if kind != "ConstantOfShape":
        inputs.insert(0, ("x", TensorProto.FLOAT, ["n", 1, 8] if kind == "Expand" else ["n", 32]))
    node = helper.make_node(kind, [name for name, *_ in inputs], ["y"])
    model = make_model([node], inputs, [("y", TensorProto.FLOAT, ["n", 4, 8])])
    drawn = draw(model, dimensions={"n": 5} if kind != "ConstantOfShape" else {})
    assert drawn["s"].tolist() == [5 if kind != "ConstantOfShape" else 2, 4, 8]
    assert run(open_session(model, "as_written"), drawn)["y"].shape == tuple(drawn["s"])


def test_plain_integers_are_never_zero(make_model):
    """onnxruntime kills the process on integer division by zero."""
    values = draw(identity(make_model, element=TensorProto.INT64, shape=(500,)))["x"]
    assert set(values.tolist()) == {1, 2, 3, 4}


@pytest.mark.parametrize("element", [TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL])
def test_masks_are_prefixes_that_leave_something(make_model, element):
    mask = draw(identity(make_model, "attention_mask", element, (200, 6)))["attention_mask"].astype(int)
    assert set(np.unique(mask)) == {0, 1}
    assert (np.diff(mask, axis=1) <= 0).all()
    assert set(mask.sum(axis=1).tolist()) == {1, 2, 3, 4, 5, 6}


def gather_model(make_model, carrier=(), rows=(40, 7), axis=0):
    """Indices look up a table of `rows` each, after passing through `carrier` operators."""
    tables = {f"table{i}": np.ones((n, 3) if axis == 0 else (3, n), np.float32) for i, n in enumerate(rows)}
    names = ["ids", *(f"ids{i}" for i in range(len(carrier)))]
    nodes = [helper.make_node(op, [names[i]], [names[i + 1]]) for i, op in enumerate(carrier)]
    nodes += [helper.make_node("Gather", [table, names[-1]], [f"y{i}"], axis=axis) for i, table in enumerate(tables)]
    outputs = [(f"y{i}", TensorProto.FLOAT, None) for i in range(len(rows))]
    return make_model(nodes, [("ids", TensorProto.INT64, [600])], outputs, tables)


@pytest.mark.parametrize("carrier", [(), ("Identity",), ("Identity", "Flatten")])
@pytest.mark.parametrize("axis", [0, 1])
def test_indices_cover_the_smallest_table(make_model, carrier, axis):
    model = gather_model(make_model, carrier, axis=axis)
    inputs = draw(model)
    assert set(inputs["ids"].tolist()) == set(range(7))
    run(open_session(model, "as_written"), inputs)


def test_indices_are_found_inside_a_subgraph(make_model):
    branch = helper.make_graph(
        [helper.make_node("Gather", ["table", "ids"], ["inner"])],
        "branch",
        [],
        [helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)],
    )
    model = make_model(
        [helper.make_node("If", ["condition"], ["y"], then_branch=branch, else_branch=branch)],
        [("ids", TensorProto.INT64, [300]), ("condition", TensorProto.BOOL, [])],
        [("y", TensorProto.FLOAT, None)],
        {"table": np.ones((11, 2), np.float32)},
    )
    assert set(draw(model)["ids"].tolist()) == set(range(11))


def test_a_table_from_a_constant_node_counts(make_model):
    table = helper.make_tensor("t", TensorProto.FLOAT, [9, 1], [0.0] * 9)
    model = make_model(
        [
            helper.make_node("Constant", [], ["table"], value=table),
            helper.make_node("Gather", ["table", "ids"], ["y"]),
        ],
        [("ids", TensorProto.INT32, [300])],
        [("y", TensorProto.FLOAT, None)],
    )
    assert set(draw(model)["ids"].tolist()) == set(range(9))


@settings(max_examples=20)
@given(
    sizes=st.dictionaries(st.sampled_from(["batch", "sequence"]), st.integers(1, 5)),
    default=st.integers(1, 4),
)
def test_symbolic_dimensions_agree_by_name(sizes, default):
    graph = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["y"])],
        "g",
        [
            helper.make_tensor_value_info("a", TensorProto.FLOAT, ["batch", "sequence"]),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, ["batch", "sequence"]),
            helper.make_tensor_value_info("c", TensorProto.FLOAT, [None, "batch"]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "sequence"])],
    )
    model = helper.make_model(graph, ir_version=10)
    arrays = draw(model, dimensions=sizes, default_dimension=default)
    batch, sequence = sizes.get("batch", default), sizes.get("sequence", default)
    assert arrays["a"].shape == arrays["b"].shape == (batch, sequence)
    assert arrays["c"].shape == (default, batch)
    assert symbolic_dimensions(model) == ["batch", "sequence"]


def test_initialised_inputs_are_not_drawn(make_model):
    model = make_model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [("x", TensorProto.FLOAT, [2]), ("w", TensorProto.FLOAT, [2])],
        [("y", TensorProto.FLOAT, [2])],
        {"w": np.ones(2, np.float32)},
    )
    assert list(draw(model)) == ["x"]


def test_refusals(make_model):
    with pytest.raises(InputError, match=r"no symbolic dimension width; it has: batch"):
        draw(identity(make_model, shape=("batch",)), dimensions={"width": 3})
    for element in (TensorProto.STRING, TensorProto.BFLOAT16, TensorProto.COMPLEX64, TensorProto.INT4):
        with pytest.raises(RLFlowError, match=f"input 'x' has type {TensorProto.DataType.Name(element)};"):
            draw(identity(make_model, element=element))
    sequence = make_model([], [], [])
    sequence.graph.input.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None))
    with pytest.raises(RLFlowError, match="input 's' is a sequence_type"):
        draw(sequence)


@pytest.mark.parametrize("shape", [(2**31, 64), (-1,), (4, -(2**63)), (2**62, 8), (2**63 - 1,)])
def test_shapes_that_no_memory_holds_are_refused(make_model, shape):
    """Whatever a file declares: nothing is allocated first."""
    with pytest.raises(RLFlowError, match=r"input 'x' has shape \[.*\]; no values of this shape can be drawn"):
        draw(identity(make_model, shape=shape))


def test_an_empty_shape_beside_a_huge_one_is_drawn(make_model):
    assert draw(identity(make_model, shape=(2**40, 0)))["x"].shape == (2**40, 0)
