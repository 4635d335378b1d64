"""What is read of a model's outputs becomes part of the model: numpy's index of the whole, in any opset."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, checker, helper
from support.onnx_models import Build, floats

from rlflow.errors import InputError
from rlflow.onnx_io.reads import Read, parse_read, reading
from rlflow.runtime.session import open_session, run

OPSETS = (7, 9, 10, 11, 13, 17, 21)


def negated(sizes: list[int | str], opset: int = 17) -> ModelProto:
    """Y = -x and z = x + x."""
    nodes = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Add", ["x", "x"], ["z"])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name in "xyz"]
    graph = helper.make_graph(nodes, "negated", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def text_of(index: tuple[int | slice, ...]) -> str:
    """The index as Python writes it, in the spelling of slices."""

    def one(axis: int | slice) -> str:
        if isinstance(axis, int):
            return str(axis)
        ends = ("" if end is None else str(end) for end in (axis.start, axis.stop))
        return ":".join((*ends, *([] if axis.step is None else [str(axis.step)])))

    return ", ".join(map(one, index))


@st.composite
def read_arrays(draw: st.DrawFn) -> tuple[list[int], tuple[int | slice, ...]]:
    """A shape, and an index that it has."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    ends = st.none() | st.integers(-5, 5)
    slices = st.builds(slice, ends, ends, st.none() | st.integers(1, 3))
    axes = [st.integers(-size, size - 1) | slices for size in sizes]
    return sizes, tuple(draw(axis) for axis in axes[: draw(st.integers(0, len(sizes)))])


@given(read_arrays(), st.sampled_from(OPSETS), st.booleans())
def test_it_is_what_numpy_reads(drawn, opset, is_open):
    """Of sizes that the model declares or leaves open, which it then declares of what is read or leaves open, too."""
    sizes, index = drawn
    if opset < 10 and any(isinstance(axis, slice) and axis.step not in (None, 1) for axis in index):
        return  # refused, as below
    x = np.random.default_rng(0).standard_normal(sizes).astype(np.float32)
    model = negated([f"n{axis}" for axis in range(len(sizes))] if is_open else sizes, opset)
    before = model.SerializeToString()
    read = reading(model, [parse_read(f"y[{text_of(index)}]") if index else parse_read("y")])
    checker.check_model(read, full_check=True)
    assert model.SerializeToString() == before
    found = run(open_session(read, "as_written"), {"x": x})
    assert list(found) == ["y"]
    np.testing.assert_array_equal(found["y"], -x[index])
    if not is_open:
        declared = [axis.dim_value for axis in read.graph.output[0].type.tensor_type.shape.dim]
        assert declared == list(x[index].shape)


def test_outputs_come_in_the_order_of_their_reads_and_others_go():
    model = negated([2, 3])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    read = reading(model, [Read("z", (slice(None), 1)), Read("y")])
    found = run(open_session(read, "deployed"), {"x": x})
    assert list(found) == ["z", "y"]
    np.testing.assert_array_equal(found["z"], 2 * x[:, 1])
    np.testing.assert_array_equal(found["y"], -x)
    assert [value.name for value in reading(model, [Read("y")]).graph.output] == ["y"]


def test_what_reads_the_whole_output_goes_on_doing_so(model: Build):
    """A node and the branch of an If read an output of which a part is read outside."""
    branch = helper.make_graph([helper.make_node("Neg", ["y"], ["inside"])], "branch", [], [floats("inside", 2, 3)])
    nodes = [
        helper.make_node("Neg", ["x"], ["y"]),
        helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch),
        helper.make_node("Add", ["y", "z"], ["sum"]),
    ]
    inputs = [floats("x", 2, 3), helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
    built = model(nodes, inputs, [floats("y", 2, 3), floats("sum", 2, 3)])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    read = reading(built, [parse_read("y[0]"), parse_read("sum")])
    found = run(open_session(read, "as_written"), {"x": x, "c": np.array(True)})
    np.testing.assert_array_equal(found["y"], -x[0])
    np.testing.assert_array_equal(found["sum"], np.zeros((2, 3)))


@pytest.mark.parametrize("text", ["", "[0]", "y[a]", "y[...]", "y[]", "y[0,]", "y[1:2:3:4]", "y[1.5]"])
def test_what_is_no_read_is_refused(text):
    with pytest.raises(InputError, match="reads no output"):
        parse_read(text)


@pytest.mark.parametrize(
    ("reads", "reason"),
    [
        (["w"], "there is no output 'w': choose from y, z"),
        (["y[0, 0, 0]"], "has 2 axes, and the index 3"),
        (["y[2]"], "no place 2 on an axis of 2"),
        (["y[:, -4]"], "no place -4 on an axis of 3"),
        (["y", "z", "y[0]"], "read twice: y"),
        (["y[::-1]"], "goes backwards"),
    ],
)
def test_what_a_model_has_not_is_refused(reads, reason):
    with pytest.raises(InputError, match=reason):
        reading(negated([2, 3]), [parse_read(text) for text in reads])


def test_what_cannot_be_said_is_refused(model: Build):
    with pytest.raises(InputError, match="opset 9 slices by steps of 1 alone"):
        reading(negated([2, 3], 9), [parse_read("y[::2]")])
    sequence = helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, [2])
    of_parts = model([helper.make_node("SequenceConstruct", ["x", "x"], ["y"])], [floats("x", 2)], [sequence])
    with pytest.raises(InputError, match="'y' declares no shape"):
        reading(of_parts, [parse_read("y[0]")])
    passed_on = model([helper.make_node("Neg", ["x"], ["y"])], [floats("x", 2)], [floats("x", 2), floats("y", 2)])
    with pytest.raises(InputError, match="'x' is an input or a constant"):
        reading(passed_on, [parse_read("x[0]")])
