"""The e-graph of a model holds every value once, and stays closed under congruence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import graphs, source, weight

from rlflow import zoo
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.errors import RuleError
from rlflow.ir import Graph, Header, Node, Ref, make_graph
from rlflow.onnx_io import from_onnx
from rlflow.ops import registry


def built(*steps: tuple[str, tuple[int, ...]], outputs: int = 1) -> Graph:
    """A graph over the inputs x (0) and y (1) and the weights of 2 (2) and 3 (3), all 2 x 2; the last are outputs."""
    nodes = [source((2, 2), "x"), source((2, 2), "y")]
    nodes += [weight(np.full((2, 2), value, np.float32), f"w{value}") for value in (2, 3)]
    for op, operands in steps:
        typed = [(Ref(i), nodes[i].types[0], nodes[i].constant) for i in operands]
        nodes.append(registry.apply(op, {}, typed))
    refs = [Ref(i) for i in range(len(nodes) - outputs, len(nodes))]
    return make_graph(dict(enumerate(nodes)), [0, 1], refs, [f"z{i}" for i in range(outputs)], Header(17))


def congruent(egraph: ModelEGraph) -> bool:
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


def test_what_reads_constants_alone_is_constant() -> None:
    """Before the union it is not, and the value from which the constant came has a form that is stored."""
    egraph = ModelEGraph.from_graph(built(("Relu", (0,)), ("Add", (2, 3)), ("MatMul", (4, 5)), ("Tanh", (6,))))
    tanh, total = egraph.class_of[Ref(7)], egraph.class_of[Ref(5)]
    assert egraph.is_constant(total)
    assert egraph.constant_depth(total) == 1
    assert not egraph.is_constant(tanh)
    egraph.unite(egraph.class_of[Ref(4)], egraph.class_of[Ref(2)])
    assert tanh in egraph.rebuild()
    assert egraph.constant_depth(tanh) == 3
    assert egraph.node(egraph.constant_form(egraph.class_of[Ref(4)])).node.op == "Weight"


def test_numbers_are_known_through_constant_expressions() -> None:
    nodes = [source((), "x"), weight(np.array(3, np.float32)), weight(np.array([2, 2], np.float32))]
    nodes.append(registry.apply("Mul", {}, [(Ref(1), nodes[1].types[0], True)] * 2))
    nodes.append(registry.apply("Mul", {}, [(Ref(i), nodes[i].types[0], i > 0) for i in (0, 3)]))
    nodes.append(registry.apply("Mul", {}, [(Ref(i), nodes[i].types[0], i == 2) for i in (4, 2)]))
    egraph = ModelEGraph.from_graph(make_graph(dict(enumerate(nodes)), [0], [Ref(5)], ["y"], Header(17)))
    numbers = [egraph.number(egraph.class_of[Ref(i)]) for i in range(6)]
    assert numbers == [None, 3.0, None, 9.0, None, None]
    assert egraph.stored_number(egraph.class_of[Ref(1)]) == 3.0
    assert egraph.stored_number(egraph.class_of[Ref(3)]) is None, "it is computed, not stored"


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


@pytest.mark.parametrize("name", ["loop", "tiny_chain", "nasrnn"])
def test_every_node_of_a_model_can_be_made_again(name: str) -> None:
    """Operands that are left out, subgraphs with captured values and several outputs included."""
    settings = {"steps": 2, "hidden": 8} if name == "nasrnn" else {}
    graph = from_onnx(zoo.build(name, **settings))
    egraph = ModelEGraph.from_graph(graph)
    for identifier, node in graph.nodes.items():
        for place in range(len(node.types)):
            kept, output, children = egraph.node(egraph.class_of[Ref(identifier, place)])
            assert output == place
            assert (kept.op, kept.signature) == (node.op, node.signature)
            assert list(children) == [egraph.class_of[ref] for ref in node.inputs if ref is not None]


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


def test_the_constant_forms_of_classes_lead_to_weights() -> None:
    """Even where a constant is equal to an expression of itself."""
    egraph = ModelEGraph.from_graph(built(("Add", (2, 3)), ("MatMul", (4, 0))))
    egraph.unite(egraph.class_of[Ref(4)], egraph.class_of[Ref(2)])
    egraph.rebuild()
    form = egraph.constant_form(egraph.class_of[Ref(4)])
    assert egraph.node(form).node.op == "Weight"


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


@pytest.mark.filterwarnings("error")
def test_numbers_that_are_not_finite_come_without_warnings() -> None:
    """Not vacuous: the number of 1 / 0 is computed, which numpy warns of by itself."""
    nodes = [weight(np.full((1,), value, np.float32), name) for value, name in ((1, "one"), (0, "zero"))]
    nodes.append(registry.apply("Div", {}, [(Ref(i), nodes[i].types[0], True) for i in range(2)]))
    graph = make_graph(dict(enumerate(nodes)), [], [Ref(2)], ["y"], Header(17))
    egraph = ModelEGraph.from_graph(graph)
    assert egraph.number(egraph.class_of[Ref(2)]) == np.inf
