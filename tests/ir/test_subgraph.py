"""A few nodes as a graph: what they read from outside is an input, their weights come along."""

import numpy as np
import pytest

from rlflow import zoo
from rlflow.ir.node import INPUT, Ref
from rlflow.ir.subgraph import boundary, excerpt
from rlflow.ir.validate import validate
from rlflow.onnx_io import from_onnx
from rlflow.ops.domain import FloatDomain
from rlflow.ops.reference import evaluate, evaluate_value


@pytest.fixture(scope="module")
def graph():
    return from_onnx(zoo.build("bert", layers=1, hidden=16, heads=2, intermediate=32, sequence=4, vocabulary=9))


def values(graph):
    rng = np.random.default_rng(0)
    known = {}
    for identifier in graph.inputs:
        kind = graph.type_of(Ref(identifier))
        known[Ref(identifier)] = rng.integers(0, 2, kind.shape).astype(kind.dtype)
    for ref in graph.outputs:
        evaluate_value(graph.nodes, ref, known, FloatDomain())
    return known


@pytest.mark.parametrize("size", [1, 2, 5])
def test_an_excerpt_computes_what_its_nodes_do(graph, size):
    """Windows of the order of every size, from its start to its end: on the values that the nodes meet in the graph."""
    known = values(graph)
    for start in range(0, len(graph.order) - size, 3):
        inside = [i for i in graph.order[start : start + size] if graph.nodes[i].op != INPUT]
        if not inside:
            continue
        outputs = [Ref(inside[-1])]
        part = excerpt(graph, inside, outputs)
        validate(part)
        assert len(part.inputs) <= len(boundary(graph, inside))
        read = boundary(graph, inside)
        feeds = {f"value_{place}": known[ref] for place, ref in enumerate(read)}
        result = evaluate(part, feeds)["output_0"]
        np.testing.assert_array_equal(result, known[outputs[0]])


def test_weights_come_along_and_ids_stay(graph):
    (product,) = [i for i in graph.order if graph.nodes[i].op == "MatMul"][:1]
    part = excerpt(graph, [product], [Ref(product)])
    assert part.nodes[product].op == "MatMul"
    weights = [ref for ref in graph.nodes[product].inputs if graph.nodes[ref.node].constant]
    assert all(part.nodes[ref.node] is graph.nodes[ref.node] for ref in weights)
    assert set(part.inputs).isdisjoint(graph.nodes)


def test_a_value_read_twice_is_one_input(graph):
    for identifier in graph.order:
        read = boundary(graph, [identifier])
        assert len(set(read)) == len(read)
        assert all(not graph.nodes[ref.node].constant for ref in read)
