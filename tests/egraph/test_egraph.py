"""An e-graph holds every value once, and stays closed under congruence; e-graphs of models are the examples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.egraphs import built
from support.strategies import graphs, source, weight

from rlflow.egraph.constants import Value
from rlflow.egraph.egraph import EGraph
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.errors import RuleError
from rlflow.ir import Graph, Header, Node, Ref, make_graph
from rlflow.ops import registry


def congruent(egraph: EGraph[Value]) -> bool:
    """No two applications that count are the same node over the same classes."""
    contents = []
    for number in egraph.applications():
        node, _, children = egraph.node(number)
        if node.op != "Input" and not node.is_opaque:
            ordered = sorted(children) if node.op in ("Add", "Mul") else children
            contents.append((node.signature, tuple(ordered)))
    return len(contents) == len(set(contents))


def test_equals_applied_to_equals_are_equal() -> None:
    egraph = ModelEGraph.from_graph(built(("Relu", (0,)), ("Tanh", (4,)), ("Relu", (1,)), ("Tanh", (6,)), outputs=4))
    one, other = egraph.class_of[Ref(5)], egraph.class_of[Ref(7)]
    size = len(egraph)
    assert egraph.unite(egraph.class_of[Ref(0)], egraph.class_of[Ref(1)])
    assert egraph.find(one) != egraph.find(other)
    assert set(egraph.rebuild()) >= {egraph.find(one)}
    assert egraph.find(one) == egraph.find(other)
    assert len(egraph) == size - 2
    assert egraph.find_node(other) == egraph.find_node(one) == min(one, other)
    assert egraph.rebuild() == ()
    assert not egraph.unite(one, other)


def test_a_sum_is_known_in_either_order_and_keeps_the_order_it_came_with() -> None:
    egraph = ModelEGraph.from_graph(
        built(("Add", (1, 0)), ("Add", (0, 1)), ("Sub", (0, 1)), ("Sub", (1, 0)), outputs=4)
    )
    classes = [egraph.find(egraph.class_of[Ref(i)]) for i in range(4, 8)]
    assert classes[0] == classes[1]
    assert len(set(classes)) == 3
    assert egraph.node(classes[0]).children == (1, 0)


def test_outputs_of_one_application_stay_together() -> None:
    def split(operand: int) -> Node:
        return registry.apply("Split", {"axis": 0, "split": (1, 1)}, [(Ref(operand), nodes[operand].types[0], False)])

    nodes = [source((2, 2), "x"), source((2, 2), "y")]
    nodes += [split(0), split(1)]
    outputs = [Ref(2, 0), Ref(2, 1), Ref(3, 0), Ref(3, 1)]
    graph = make_graph(dict(enumerate(nodes)), [0, 1], outputs, list("abcd"), Header(17))
    egraph = ModelEGraph.from_graph(graph)
    assert [egraph.node(number).output for number in egraph.outputs] == [0, 1, 0, 1]
    egraph.unite(0, 1)
    egraph.rebuild()
    assert egraph.outputs[:2] == egraph.outputs[2:]
    assert len(set(egraph.outputs)) == 2
    assert {egraph.application(number) for number in egraph.outputs} == {egraph.outputs[0]}


def test_values_of_two_types_are_never_equal() -> None:
    nodes = {0: source((2, 2), "x"), 1: source((), "y")}
    egraph = ModelEGraph.from_graph(make_graph(nodes, [0, 1], [Ref(0), Ref(1)], ["a", "b"], Header(17)))
    with pytest.raises(RuleError, match=r"float32\[2, 2\].*float32\[\]"):
        egraph.unite(0, 1)


def test_two_opaque_nodes_are_never_the_same() -> None:
    """They may draw random numbers, as far as anybody knows."""
    x = source((2, 2), "x")
    opaque = Node("my.Noise", (Ref(0),), {}, x.types, ("",), payload=weight(np.zeros(1)).payload)
    nodes = {0: x, 1: opaque, 2: opaque, 3: registry.apply("Relu", {}, [(Ref(1), x.types[0], False)])}
    graph = make_graph(nodes, [0], [Ref(1), Ref(2), Ref(3)], ["a", "b", "c"], Header(17))
    egraph = ModelEGraph.from_graph(graph)
    assert len(set(egraph.outputs)) == 3


@given(graphs(), st.data())
def test_rebuilding_gives_what_building_anew_would(graph: Graph, data: st.DataObject) -> None:
    """Whatever values of one type are united, the e-graph is congruent, and each class has one type and constancy."""
    egraph = ModelEGraph.from_graph(graph)
    for _ in range(3):
        one, other = (data.draw(st.sampled_from(egraph.classes())) for _ in range(2))
        if egraph.type_of(one) == egraph.type_of(other):
            egraph.unite(one, other)
            egraph.rebuild()
    assert congruent(egraph)
    assert len(egraph) == sum(len(egraph.members(name)) for name in egraph.classes())
    for name in egraph.classes():
        nodes = [egraph.node(number) for number in egraph.members(name)]
        assert {node.node.types[node.output] for node in nodes} == {egraph.type_of(name)}
        assert any(node.node.constant for node in nodes) == egraph.is_constant(name)
        for number in egraph.members(name):
            assert all(egraph.application(number) in egraph.readers(child) for child in egraph.node(number).children)


def test_a_filtered_application_is_no_member_and_does_not_come_back() -> None:
    graph = built(("Relu", (0,)), ("Relu", (4,)))
    egraph = ModelEGraph.from_graph(graph)
    egraph.unite(egraph.class_of[Ref(4)], egraph.class_of[Ref(5)])
    egraph.rebuild()
    inner, outer = egraph.class_of[Ref(4)], egraph.class_of[Ref(5)]
    egraph.filter(outer)
    assert list(egraph.members(outer)) == [inner]
    assert outer not in egraph.applications()
    assert egraph.insert(graph.nodes[5], [inner]) == outer
