"""Tensat's filter keeps an e-graph free of cycles, and takes no more than it must."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from support.egraph_values import assert_members_agree
from support.strategies import graphs, source

from rlflow.cost.analytic import AnalyticCost
from rlflow.egraph.cycles import CycleFilter, break_cycles
from rlflow.egraph.exploration import TENSAT, explore
from rlflow.egraph.matching import EMatcher
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.egraph.prices import NodePrices
from rlflow.ir import Graph, Header, Ref, make_graph
from rlflow.ops import registry
from rlflow.rules import library
from rlflow.rules.rule import rule_from_json

PRICE = NodePrices(AnalyticCost(), Header(17))
ALL = EMatcher(library.load().rules, Header(17), PRICE)


def has_cycle(egraph: ModelEGraph) -> bool:
    """Kahn's algorithm, by classes: what never becomes ready is on a cycle, or behind one."""
    operands = {
        value: {child for member in egraph.members(value) for child in egraph.node(member).children}
        for value in egraph.classes()
    }
    while ready := [value for value, needed in operands.items() if not needed]:
        for value in ready:
            del operands[value]
        for needed in operands.values():
            needed.difference_update(ready)
    return bool(operands)


def tower(*operators: str) -> Graph:
    nodes = [source((2, 2), "x")]
    for place, op in enumerate(operators):
        nodes.append(registry.apply(op, {}, [(Ref(place), nodes[place].types[0], False)]))
    return make_graph(dict(enumerate(nodes)), [0], [Ref(len(operators))], ["y"], Header(17))


def test_of_a_cycle_the_last_member_goes() -> None:
    """Where Relu(Relu(x)) is Relu(x), the outer one reads itself."""
    egraph = ModelEGraph.from_graph(tower("Relu", "Relu", "Tanh"))
    assert break_cycles(egraph) == 0
    egraph.unite(1, 2)
    egraph.rebuild()
    assert has_cycle(egraph)
    assert break_cycles(egraph) == 1
    assert not has_cycle(egraph)
    assert list(egraph.filtered) == [2]
    assert list(egraph.members(1)) == [1]


def test_the_only_member_of_a_class_stays() -> None:
    """The cycle is Tanh, Relu, Neg; Neg came last, but without it nothing makes its class."""
    egraph = ModelEGraph.from_graph(tower("Relu", "Tanh", "Neg", "Sqrt"))
    egraph.unite(0, 2)
    egraph.rebuild()
    assert has_cycle(egraph)
    break_cycles(egraph)
    assert not has_cycle(egraph)
    assert list(egraph.filtered) == [2]


def test_a_match_is_refused_if_its_target_reads_what_needs_the_root() -> None:
    """x = Neg(Neg(x)) would put a reader of Neg(x) into the class that Neg(x) reads."""
    egraph = ModelEGraph.from_graph(tower("Relu", "Tanh"))
    egraph.rebuild()
    admitted = CycleFilter(egraph)
    around = rule_from_json("around", "test", [["Relu", "a"]], [["Neg", ["Neg", "a"]]])
    (match,) = EMatcher([around], Header(17), PRICE).everywhere(egraph)
    assert admitted.admits(egraph, match)
    assert not admitted.admits(egraph, match._replace(variables={"a": 1}))
    assert not admitted.admits(egraph, match._replace(variables={"a": 2}))


@given(graphs())
@settings(max_examples=12)
def test_an_e_graph_explored_as_tensat_does_has_no_cycle(graph: Graph) -> None:
    """And each of its values can still be computed."""
    egraph = ModelEGraph.from_graph(graph)
    explored = explore(egraph, ALL, replace(TENSAT, max_nodes=150, max_passes=3))
    assert explored.passes <= 3
    assert not has_cycle(egraph)
    assert_members_agree(egraph, graph, np.random.default_rng(0))
