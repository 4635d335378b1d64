"""A preview tells of running nodes what the edit will do to them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import graphs, source
from support.walks import REWRITER, add, leaf

from rlflow import zoo
from rlflow.ir.graph import Graph, Header, make_graph
from rlflow.ir.node import Node, Ref
from rlflow.ir.preview import Preview, preview, runs
from rlflow.onnx_io import from_onnx
from rlflow.ops import registry


def check(graph: Graph, added: dict[int, Node], substitution: dict[Ref, Ref]) -> Preview:
    """Make the edit, and compare; a node is an operand's reader if it was given another operand."""
    told, after = preview(graph, added, substitution), graph.replace(added, substitution)
    assert after.edit is not None
    change, ran = after.edit.change, {i for i, node in graph.nodes.items() if runs(node)}
    assert told.removed == ran & set(change.removed)
    assert told.touched == ran & change.touched
    assert told.readers == {i for i in ran & change.touched if graph.nodes[i].inputs != after.nodes[i].inputs}
    assert told.idle == {i for i, node in added.items() if runs(node) and i not in after.nodes}
    return told


@pytest.fixture
def chain() -> Graph:
    """y = relu(a), z = tanh(a), with a = neg(x): two outputs of one value."""
    nodes: list[Node] = []
    a = add(nodes, "Neg", leaf(nodes, source((2, 3), "x")))
    outputs = [add(nodes, "Relu", a), add(nodes, "Tanh", a)]
    return make_graph(dict(enumerate(nodes)), [0], outputs, ["y", "z"], Header(17))


def made(graph: Graph, op: str, operand: Ref) -> Node:
    return registry.apply(op, {}, [(operand, graph.type_of(operand), False)])


def test_readers_are_touched_and_what_nobody_reads_goes(chain):
    told = check(chain, {4: made(chain, "Relu", Ref(0))}, {Ref(1): Ref(4)})
    assert (told.removed, told.readers, told.touched, told.idle) == ({1}, {2, 3}, {2, 3}, set())


def test_an_output_that_is_given_to_another_node_touches_both(chain):
    told = check(chain, {}, {Ref(2): Ref(1)})
    assert (told.removed, told.readers, told.touched) == ({2}, set(), {1})


def test_a_node_that_nobody_would_read_is_idle(chain):
    told = check(chain, {4: made(chain, "Relu", Ref(0)), 5: made(chain, "Tanh", Ref(1))}, {Ref(1): Ref(4)})
    assert (told.removed, told.idle) == ({1}, {5})


def split_graph(read: tuple[int, ...]) -> Graph:
    """Both halves of x, of which the first is an output of the graph, and a Concat of some of them another."""
    nodes: list[Node] = []
    x = leaf(nodes, source((4, 3), "x"))
    half = add(nodes, "Split", x, axis=0, split=(2, 2))
    halves = [half, Ref(half.node, 1)]
    joined = add(nodes, "Concat", *(halves[i] for i in read), axis=0)
    return make_graph(dict(enumerate(nodes)), [0], [halves[0], joined], ["half", "joined"], Header(17))


@pytest.mark.parametrize("read", [(0, 0), (0, 1), (1, 1)])
def test_a_value_of_a_node_that_stays_is_replaced(read: tuple[int, ...]):
    """Whether anybody reads it, its reader goes on reading the other value, or reads that from now on."""
    told = check(split_graph(read), {}, {Ref(1, 1): Ref(1, 0)})
    assert told.touched == {1} | told.readers
    assert told.readers == ({2} if 1 in read else set())


@settings(max_examples=12)
@given(graphs(), st.integers(0, 2**32 - 1))
def test_a_preview_of_any_rewrite_comes_true(graph, seed):
    rng = np.random.default_rng(seed)
    for _ in range(3):
        found = [match for matches in REWRITER.matches(graph) for match in matches]
        if not found:
            return
        match = found[int(rng.integers(len(found)))]
        check(graph, *REWRITER.edit(graph, match))
        graph = REWRITER.apply(graph, match)


@pytest.mark.parametrize("name", ["bert", "tiny_merge", "nasrnn"])
def test_a_preview_of_every_rewrite_of_a_model_comes_true(name):
    """Merges with several roots, splits of which a part stays, nodes that are found: in some something goes."""
    graph = from_onnx(zoo.build(name, **dict(zoo.describe(name).small)))
    told = [check(graph, *REWRITER.edit(graph, m)) for found in REWRITER.matches(graph) for m in found]
    assert any(t.removed for t in told)
    assert len({len(t.removed) for t in told}) > 1
