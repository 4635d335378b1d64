"""Order, edits, sharing and the clean-up of what an edit leaves behind."""

import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.square_graphs import SQUARE, graph_of, node, random_graph, source, weight

from rlflow.errors import GraphError
from rlflow.ir import Graph, Node, Ref, TensorType, make_graph, validate


def _consumers_from_scratch(graph: Graph) -> dict[int, set[int]]:
    readers: dict[int, set[int]] = {i: set() for i in graph.nodes}
    for identifier, n in graph.nodes.items():
        for s in n.sources:
            readers[s].add(identifier)
    return readers


def test_order_is_depth_first_from_the_outputs_operands_from_the_left() -> None:
    nodes = [source(), node("Relu", 0), node("Tanh", 0), node("Add", 2, 1), node("Neg", 0)]
    assert graph_of(nodes, 3, 4).order == (2, 1, 3, 4)
    assert graph_of(nodes, 4, 3).order == (4, 2, 1, 3)
    assert list(graph_of(nodes, 3, 4).positions()) == [-1, 1, 0, 2, 3]


def test_leaves_and_constants_do_not_run() -> None:
    constant = Node("Neg", (Ref(1),), {}, (SQUARE,), ("c",), True)
    graph = graph_of([source(), weight(), constant, node("Add", 0, 2)], 3)
    assert graph.order == (3,)


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1))
def test_order_respects_operands(seed: int) -> None:
    graph = random_graph(seed)
    seen: set[int] = set()
    for identifier in graph.order:
        running = {s for s in graph.nodes[identifier].sources if not graph.nodes[s].constant} - set(graph.inputs)
        assert running <= seen
        seen.add(identifier)
    assert seen == {i for i, n in graph.nodes.items() if n.op != "Input" and not n.constant}


def test_order_names_a_cycle() -> None:
    nodes = {0: source(), 1: node("Add", 0, 2), 2: node("Relu", 1)}
    looped = Graph(nodes, (0,), (Ref(2),), ("y",), {0: (1,), 1: (2,), 2: (1,)}, graph_of([source()], 0).header, 3)
    with pytest.raises(GraphError, match="cycle through node"):
        _ = looped.order


def test_make_graph_leaves_dead_nodes_out_and_keeps_inputs() -> None:
    nodes = [source("x"), source("unused"), weight(), node("Relu", 0), node("Add", 0, 2)]
    graph = graph_of(nodes, 3)
    assert set(graph.nodes) == {0, 1, 3}
    validate(graph)


def test_replace_redirects_readers_and_outputs_and_sweeps() -> None:
    #    x -> Relu -> Relu -> Add(., w);  Relu -> Tanh
    nodes = [source(), node("Relu", 0), node("Relu", 1), weight(), node("Add", 2, 3), node("Tanh", 1)]
    graph = graph_of(nodes, 4, 2, 5)
    child = graph.replace({}, {Ref(2): Ref(1)})
    validate(child)
    assert child.nodes[4].inputs == (Ref(1), Ref(3))
    assert child.outputs == (Ref(4), Ref(1), Ref(5))
    assert 2 not in child.nodes
    assert child.edit is not None
    assert child.edit.change.removed == (2,)
    assert child.edit.change.added == ()
    assert child.edit.change.touched == {1, 4}
    assert set(graph.nodes) == {0, 1, 2, 3, 4, 5}, "the parent is as it was"
    validate(graph)


def test_untouched_nodes_are_shared_with_the_parent() -> None:
    graph = random_graph(3, size=60)
    root = graph.order[len(graph.order) // 2]
    new = graph.next_id
    child = graph.replace({new: node("Sigmoid", *graph.nodes[root].inputs)}, {Ref(root): Ref(new)})
    assert child.edit is not None
    readers = set(graph.consumers[root])
    for identifier in set(child.nodes) & set(graph.nodes):
        if identifier in readers:
            assert child.nodes[identifier] is not graph.nodes[identifier]
        else:
            assert child.nodes[identifier] is graph.nodes[identifier]


def test_sweep_removes_what_only_the_dead_read() -> None:
    nodes = [
        source(),
        weight(),
        Node("Neg", (Ref(1),), {}, (SQUARE,), ("c",), True),
        node("Add", 0, 2),
        node("Relu", 3),
    ]
    graph = graph_of(nodes, 4)
    child = graph.replace({}, {Ref(3): Ref(0)})
    assert set(child.nodes) == {0, 4}
    assert child.edit is not None
    assert set(child.edit.change.removed) == {1, 2, 3}
    validate(child)


def test_an_added_node_that_nobody_reads_is_swept() -> None:
    graph = graph_of([source(), node("Relu", 0)], 1)
    child = graph.replace({2: node("Tanh", 0), 3: node("Neg", 0)}, {Ref(1): Ref(2)})
    assert set(child.nodes) == {0, 2}
    assert child.edit is not None
    assert child.edit.change.added == (2,)
    assert child.next_id == 4, "numbers are not used twice"
    validate(child)


def test_one_result_of_several_is_replaced() -> None:
    nodes = [source(), node("Pair", 0, outputs=2), node("Add", Ref(1, 0), Ref(1, 1))]
    graph = graph_of(nodes, 2)
    child = graph.replace({}, {Ref(1, 1): Ref(0)})
    assert child.nodes[2].inputs == (Ref(1, 0), Ref(0))
    validate(child)
    both = graph.replace({}, {Ref(1, 0): Ref(0), Ref(1, 1): Ref(0)})
    assert both.nodes[2].inputs == (Ref(0), Ref(0))
    assert both.consumers[0] == (2,)
    validate(both)


def test_an_output_that_is_an_input_after_an_edit() -> None:
    graph = graph_of([source(), node("Identity", 0)], 1)
    child = graph.replace({}, {Ref(1): Ref(0)})
    assert child.outputs == (Ref(0),)
    assert child.order == ()
    validate(child)


def test_replace_refuses_another_type() -> None:
    graph = graph_of([source(), node("Relu", 0, name="r")], 1)
    wide = Node("Tanh", (Ref(0),), {}, (TensorType("float32", (4, 5)),), ("",))
    with pytest.raises(GraphError, match=r"float32\[4, 4\] \('r'\) cannot be replaced by one of type float32\[4, 5\]"):
        graph.replace({2: wide}, {Ref(1): Ref(2)})


def test_replace_refuses_numbers_that_are_taken() -> None:
    graph = graph_of([source(), node("Relu", 0)], 1)
    with pytest.raises(GraphError, match="numbered from 2 on, not 1"):
        graph.replace({1: node("Tanh", 0)}, {})


def test_a_graph_does_not_keep_its_parent_alive() -> None:
    parent = graph_of([source(), node("Relu", 0), node("Relu", 1)], 2)
    child = parent.replace({}, {Ref(2): Ref(1)})
    assert child.edit is not None
    assert child.edit.parent() is parent
    del parent
    gc.collect()
    assert child.edit.parent() is None


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), data=st.data())
def test_random_edits_keep_every_invariant(seed: int, data: st.DataObject) -> None:
    """Replace a random value by a new node over its own operands, or by one of its operands, ten times over."""
    graph = random_graph(seed)
    for _ in range(10):
        running = [i for i in graph.order if len(graph.nodes[i].types) == 1]
        if not running:
            break
        target = data.draw(st.sampled_from(running))
        operands = [r for r in graph.nodes[target].inputs if r is not None]
        if data.draw(st.booleans()):
            child = graph.replace({}, {Ref(target): operands[0]})
        else:
            new = graph.next_id
            child = graph.replace({new: node("Add", operands[0], operands[-1])}, {Ref(target): Ref(new)})
        validate(child)
        assert {i: set(c) for i, c in child.consumers.items()} == _consumers_from_scratch(child)
        assert child.edit is not None
        change = child.edit.change
        assert set(change.removed) == set(graph.nodes) - set(child.nodes)
        assert set(change.added) == set(child.nodes) - set(graph.nodes)
        changed = {
            i
            for i in child.nodes
            if i not in graph.nodes
            or child.nodes[i] is not graph.nodes[i]
            or set(child.consumers[i]) != set(graph.consumers[i])
        }
        assert changed <= change.touched <= set(child.nodes)
        rebuilt = make_graph(child.nodes, child.inputs, child.outputs, child.output_names, child.header)
        assert rebuilt.order == child.order
        graph = child
