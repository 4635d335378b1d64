"""Graphs of programs: operands, types and tuples as the program has them."""

import jax
import jax.numpy as jnp
import pytest

from rlflow.ir.node import INPUT, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.passes.xla.backend import XlaBackend
from rlflow.passes.xla.lowering import Program, lowered, tensor
from rlflow.representation.features import Featuriser


def _graph(xla: XlaBackend, function, *types):
    return xla.graph(xla.load(lowered(Program(function, types))).payload)


def test_operands_types_and_attributes(xla: XlaBackend) -> None:
    graph = _graph(xla, lambda x, y: jnp.sin(y) - x.T, tensor(3, 2), tensor(2, 3))
    assert [graph.nodes[i].op for i in graph.order] == ["sin", "transpose", "subtract"]
    sine, turned, difference = (graph.nodes[i] for i in graph.order)
    x, y = graph.inputs
    assert sine.inputs == (Ref(y),)
    assert turned.inputs == (Ref(x),)
    assert turned.attributes["dimensions"] == "{1,0}"
    assert difference.inputs == (Ref(graph.order[0]), Ref(graph.order[1]))
    assert difference.types == (TensorType("float32", (2, 3)),)
    assert graph.outputs == (Ref(graph.order[2]),)


def test_a_tuple_is_several_outputs(xla: XlaBackend) -> None:
    """A sort of two arrays and a loop over three values: readers name the place in the tuple."""

    def function(keys, values, start):
        ordered, moved = jax.lax.sort((keys, values), num_keys=1)
        again = jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2.0, s[2]), (start, moved, keys))
        return again[1], ordered

    graph = _graph(xla, function, tensor(4), tensor(4), tensor(dtype="int32"))
    by_op = {graph.nodes[i].op: i for i in graph.order}
    assert [str(t) for t in graph.nodes[by_op["sort"]].types] == ["float32[4]"] * 2
    loop = graph.nodes[by_op["while"]]
    assert Ref(by_op["sort"], 1) in loop.inputs
    assert Ref(graph.inputs[2]) in loop.inputs
    assert graph.outputs[1] == Ref(by_op["sort"], 0)
    assert graph.outputs[0].node == by_op["while"]
    assert graph.type_of(graph.outputs[0]) == TensorType("float32", (4,))


def test_an_unread_parameter_stays_an_input(xla: XlaBackend) -> None:
    graph = _graph(xla, lambda x, unread, y: x + y, tensor(2), tensor(5, dtype="int32"), tensor(2))
    assert [graph.nodes[i].types[0] for i in graph.inputs] == [
        TensorType("float32", (2,)),
        TensorType("int32", (5,)),
        TensorType("float32", (2,)),
    ]


def test_equal_constants_have_equal_digests(xla: XlaBackend) -> None:
    """And others others: 0.5 twice, 0.25 once."""
    graph = _graph(xla, lambda x: (x * 0.5) + (jnp.sin(x) * 0.5) + x * 0.25, tensor())
    digests = [node.payload.digest for node in graph.nodes.values() if node.payload is not None]
    assert len(set(digests)) == 2


@pytest.mark.parametrize("name", ["mlp/step?layers=1", "sampler", "update", "branches"])
def test_encoders_read_the_graphs(xla: XlaBackend, name: str) -> None:
    """Its operators are unknown to them, and so opaque; its inputs are inputs."""
    graph = xla.graph(xla.load(name).payload)
    arrays = Featuriser().arrays(graph)
    assert len(arrays.op) == len(graph.inputs) + len(graph.order)
    assert arrays.edges.max() < len(arrays.op)
    inputs = {int(op) for op in arrays.op[: len(graph.inputs)]}
    assert len(inputs) == 1
    assert not inputs & {int(op) for op in arrays.op[len(graph.inputs) :]}
    assert all(graph.nodes[i].op == INPUT for i in graph.inputs)
