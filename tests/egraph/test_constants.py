"""Constants are known as such, with their depth and their number, wherever they are computed from constants."""

import numpy as np
import pytest
from support.egraphs import built
from support.strategies import source, weight

from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.ir import Header, Ref, make_graph
from rlflow.ops import registry


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


@pytest.mark.filterwarnings("error")
def test_numbers_that_are_not_finite_come_without_warnings() -> None:
    """Not vacuous: the number of 1 / 0 is computed, which numpy warns of by itself."""
    nodes = [weight(np.full((1,), value, np.float32), name) for value, name in ((1, "one"), (0, "zero"))]
    nodes.append(registry.apply("Div", {}, [(Ref(i), nodes[i].types[0], True) for i in range(2)]))
    graph = make_graph(dict(enumerate(nodes)), [], [Ref(2)], ["y"], Header(17))
    egraph = ModelEGraph.from_graph(graph)
    assert egraph.number(egraph.class_of[Ref(2)]) == np.inf


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
