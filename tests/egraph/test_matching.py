"""Matches in an e-graph: those of a graph and more, each typed, priced, and true."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from support.egraph_values import assert_members_agree
from support.strategies import graphs, source, weight

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.egraph.matching import MAX_CONSTANT_DEPTH, EMatch, EMatcher
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.egraph.prices import NodePrices
from rlflow.ir import Graph, Header, Node, Ref, TensorType, make_graph
from rlflow.onnx_io import from_onnx
from rlflow.ops import registry
from rlflow.rules import library
from rlflow.rules.expression import bounded_in
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule, rule_from_json

SHIPPED = library.load().rules
COST = AnalyticCost()


def matcher(rules: Sequence[Rule], header: Header | None = None) -> EMatcher:
    header = header or Header(17)
    return EMatcher(rules, header, NodePrices(COST, header))


ALL, REWRITER = matcher(SHIPPED), Rewriter(SHIPPED)


def rule(source: list, target: list, variables: dict | None = None, **rest: object) -> Rule:
    return rule_from_json("drawn up", "test", source, target, variables, **rest)


def graph_of(nodes: list[Node], inputs: Sequence[int], *outputs: int) -> Graph:
    names = [f"y{i}" for i in range(len(outputs))]
    return make_graph(dict(enumerate(nodes)), inputs, [Ref(i) for i in outputs], names, Header(17))


def apply(op: str, nodes: list[Node], *operands: int, **attributes: object) -> Node:
    return registry.apply(op, attributes, [(Ref(i), nodes[i].types[0], nodes[i].constant) for i in operands])


def everything(found: EMatcher, egraph: ModelEGraph) -> list[EMatch]:
    egraph.rebuild()
    return [*found.everywhere(egraph), *found.joint(egraph, list(egraph.applications()))]


def test_a_source_is_found_through_any_member_of_a_class() -> None:
    """Tanh(Neg(x)) occurs only once Relu(x) is known to be Neg(y)."""
    nodes = [source((2, 2), "x"), source((2, 2), "y")]
    nodes += [apply("Relu", nodes, 0), apply("Neg", nodes, 1)]
    nodes.append(apply("Tanh", nodes, 2))
    egraph = ModelEGraph.from_graph(graph_of(nodes, [0, 1], 4, 3))
    odd = rule([["Tanh", ["Neg", "a"]]], [["Neg", ["Tanh", "a"]]])
    assert everything(matcher([odd]), egraph) == []
    egraph.unite(egraph.class_of[Ref(2)], egraph.class_of[Ref(3)])
    (match,) = everything(matcher([odd]), egraph)
    assert match.variables == {"a": egraph.class_of[Ref(1)]}
    assert match.source == (egraph.class_of[Ref(4)], egraph.class_of[Ref(3)])
    assert match.roots == (egraph.class_of[Ref(4)],)
    assert match.extra_ms == 0
    assert match.reorders
    assert not match.pays


def test_a_value_with_other_readers_may_be_inside_of_a_match() -> None:
    """In a graph it may not."""
    nodes = [source((2, 2), "x")]
    nodes.append(apply("Relu", nodes, 0))
    nodes += [apply("Relu", nodes, 1), apply("Tanh", nodes, 1)]
    graph = graph_of(nodes, [0], 2, 3)
    idempotent = rule([["Relu", ["Relu", "a"]]], [["Relu", "a"]])
    assert Rewriter([idempotent]).matches(graph).counts == (0,)
    (match,) = everything(matcher([idempotent]), ModelEGraph.from_graph(graph))
    assert match.pays


def test_numbers_and_literals_are_read() -> None:
    """A number in a source, a number that an attribute takes, and a number that is computed from stored ones."""
    nodes = [source((2, 2), "x"), weight(np.array(2, np.float32)), weight(np.array(-1, np.float32))]
    nodes.append(apply("Mul", nodes, 1, 2))
    nodes += [apply("Mul", nodes, 0, 3), apply("Sub", nodes, 0, 1), apply("Mul", nodes, 2, 0)]
    graph = graph_of(nodes, [0], 4, 5, 6)
    two = rule([["Mul", "a", ["Constant", {"value_float": -2.0}]]], [["Neg", ["Add", "a", "a"]]])
    less = rule([["Sub", "a", ["Constant", {"value_float": 2.0}]]], [["Add", "a", ["Constant", {"value_float": -2.0}]]])
    any_number = rule([["Mul", "a", ["Constant", {"value_float": "?c"}]]], [["Neg", "a"]], where=[["==", "?c", -1.0]])
    found = [match.roots for match in everything(matcher([two, less, any_number]), ModelEGraph.from_graph(graph))]
    egraph = ModelEGraph.from_graph(graph)
    assert sorted(found) == sorted((egraph.class_of[Ref(i)],) for i in (4, 5, 6))


def test_an_index_that_a_rule_asks_for_is_a_whole_number() -> None:
    """As an attribute, 1.0 would be no index."""
    (last,) = (r for r in SHIPPED if r.name == "gather-of-last-to-slice")
    nodes = [source((1, 3, 4), "x"), weight(np.array(-1, np.int64))]
    nodes.append(apply("Gather", nodes, 0, 1, axis=1))
    matches = everything(matcher([last]), ModelEGraph.from_graph(graph_of(nodes, [0], 2)))
    numbers = [n for match in matches for node in match.target.nodes for n in node.attributes.get("starts", ())]
    assert numbers
    assert all(isinstance(number, int) for number in numbers)


def test_roots_of_one_match_are_different_applications_and_come_in_one_order() -> None:
    """Three products of one value are three pairs, not nine."""
    nodes = [source((2, 2), "x")]
    nodes += [weight(np.full((2, 2), i, np.float32)) for i in range(3)]
    nodes += [apply("MatMul", nodes, 0, i) for i in (1, 2, 3)]
    (merge,) = (r for r in SHIPPED if r.name == "merge-2-matmuls")
    egraph = ModelEGraph.from_graph(graph_of(nodes, [0], 4, 5, 6))
    products = sorted(egraph.class_of[Ref(i)] for i in (4, 5, 6))
    roots = [match.roots for match in everything(matcher([merge]), egraph)]
    assert sorted(roots) == [(products[0], products[1]), (products[0], products[2]), (products[1], products[2])]
    found = matcher([merge]).joint(egraph, products[:2])
    assert [match.roots for match in found] == [(products[0], products[1])]


def test_constants_are_no_place_for_a_rule_and_grow_only_so_deep() -> None:
    """A transpose of a constant that the target makes is the sixth in the second graph."""
    idempotent = rule([["Relu", ["Relu", "a"]]], [["Relu", "a"]])
    flip = rule(
        [["MatMul", "a", "w"]],
        [["MatMul", "a", ["Transpose", {"perm": [1, 0]}, ["Transpose", {"perm": [1, 0]}, "w"]]]],
        {"a": {"shape": ["m", "k"]}, "w": {"shape": ["k", "n"], "constant": True}},
    )
    for deep, allowed in ((MAX_CONSTANT_DEPTH - 2, 1), (MAX_CONSTANT_DEPTH - 1, 0)):
        nodes = [source((2, 2), "x"), weight(np.eye(2, dtype=np.float32))]
        for _ in range(deep):
            nodes.append(apply("Relu", nodes, len(nodes) - 1))
        nodes.append(apply("MatMul", nodes, 0, len(nodes) - 1))
        egraph = ModelEGraph.from_graph(graph_of(nodes, [0], len(nodes) - 1))
        matches = everything(matcher([idempotent, flip]), egraph)
        assert [match.rule for match in matches] == [flip] * allowed


def test_what_the_target_takes_is_compared_with_what_the_source_takes() -> None:
    """A product of 100 x 100 is dearer than a sum of rows, whatever else there is; constants cost nothing."""
    nodes = [source((100, 100), "x"), source((100, 100), "y"), weight(np.ones((100, 100), np.float32))]
    nodes += [apply("MatMul", nodes, 0, 2), apply("MatMul", nodes, 1, 2)]
    nodes.append(apply("Add", nodes, 3, 4))
    distribute = rule([["Add", ["MatMul", "a", "c"], ["MatMul", "b", "c"]]], [["MatMul", ["Add", "a", "b"], "c"]])
    (match, *_) = everything(matcher([distribute]), ModelEGraph.from_graph(graph_of(nodes, [0, 1], 5)))
    product = graph_of(nodes[:4], [0, 1], 3)
    assert match.extra_ms == pytest.approx(-COST.runtime_ms(product))


def test_opaque_nodes_and_left_out_operands_are_variables_at_most() -> None:
    """The loop's outputs are read by products, which match; its own name is an operator's nowhere."""
    graph = from_onnx(zoo.build("loop"))
    egraph = ModelEGraph.from_graph(graph)
    matches = everything(ALL, egraph)
    opaque = {egraph.application(egraph.class_of[Ref(i)]) for i, node in graph.nodes.items() if node.is_opaque}
    assert opaque
    assert matches
    assert all(opaque.isdisjoint(match.source) for match in matches)


def test_a_rule_that_the_model_cannot_express_does_not_match() -> None:
    """A target that needs opset 18 is for models that have it."""
    late = rule([["Relu", "a"]], [["Neg", ["Neg", ["Relu", "a"]]]], opset=18)
    nodes = [source((2, 2), "x")]
    nodes.append(apply("Relu", nodes, 0))
    egraph = ModelEGraph.from_graph(graph_of(nodes, [0], 1))
    assert not list(matcher([late], Header(17)).everywhere(egraph))
    assert list(matcher([late], Header(18)).everywhere(egraph))


def test_what_asks_for_a_bound_does_not_match() -> None:
    """A stored number is bounded, and the rewriter sees that: softmax(x + 2) is softmax(x)."""
    nodes = [source((2, 2), "x"), weight(np.full(1, 2.0, np.float32))]
    nodes.append(apply("Add", nodes, 0, 1))
    nodes.append(apply("Softmax", nodes, 2, axis=-1))
    graph = graph_of(nodes, [0], 3)
    asking = [shipped for shipped in SHIPPED if bounded_in(shipped.where)]
    assert any(Rewriter(asking).matches(graph).counts)
    assert not everything(matcher(asking), ModelEGraph.from_graph(graph))


@given(graphs())
@settings(max_examples=25)
def test_a_graph_has_all_the_matches_in_its_e_graph(graph: Graph) -> None:
    """Whatever the rewriter finds in a graph can be found in the e-graph of it, which has nothing else yet.

    Add(x, y) and Add(y, x) are one e-node there, so that which operand is bound to which variable may differ. Rules
    that ask if a value is bounded do not apply there at all (`test_what_asks_for_a_bound_does_not_match`).
    """
    egraph = ModelEGraph.from_graph(graph)
    found = {(m.rule.id, m.roots, tuple(sorted(m.variables.values()))) for m in everything(ALL, egraph)}

    def number(ref: Ref) -> int:
        return egraph.find(egraph.class_of[ref])

    for matches in REWRITER.matches(graph):
        for match in matches:
            roots = tuple(map(number, match.roots))
            if len(roots) == 1 and not bounded_in(match.rule.where):
                bound = tuple(sorted(map(number, match.bindings.values())))
                assert (match.rule.id, roots, bound) in found


@given(graphs())
@settings(max_examples=25)
def test_every_use_of_a_match_is_true(graph: Graph) -> None:
    """Members of each class compute the same after all matches have been used, those just enabled included."""
    egraph = ModelEGraph.from_graph(graph)
    for _ in range(2):
        for match in everything(ALL, egraph)[:60]:
            match.applied(egraph)
    egraph.rebuild()
    assert assert_members_agree(egraph, graph, np.random.default_rng(0)) >= min(1, len(graph.order))


@given(graphs())
@settings(max_examples=25)
def test_matches_around_a_change_are_all_that_it_brings(graph: Graph) -> None:
    """Looking again where something changed finds what looking everywhere finds."""
    egraph = ModelEGraph.from_graph(graph)
    egraph.rebuild()
    before = list(ALL.everywhere(egraph))
    first_new = egraph.next_number
    for match in before[:20]:
        match.applied(egraph)
    changed = egraph.rebuild()

    def keys(matches: Sequence[EMatch]) -> set:
        now = [(m, tuple(map(egraph.find, m.variables.values()))) for m in matches]
        return {(m.rule.id, tuple(map(egraph.find_node, m.roots)), *variables) for m, variables in now}

    assert keys(list(ALL.everywhere(egraph))) <= keys(before) | keys(list(ALL.around(egraph, changed, first_new)))


def test_a_target_that_needs_two_sizes_to_agree_does_not_match_dynamic_ones() -> None:
    """Two unknown sizes have one type, but dropping a transpose is right only where they are the same."""
    nodes = [Node("Input", (), {}, (TensorType("float32", shape),), ("x",)) for shape in ((None, "k"), ("k", None))]
    nodes.append(apply("MatMul", nodes, 0, 1))
    nodes.append(apply("Transpose", nodes, 2, perm=(1, 0)))
    egraph = ModelEGraph.from_graph(graph_of(nodes, [0, 1], 3))
    right = rule(
        [["Transpose", {"perm": [1, 0]}, ["MatMul", "a", "b"]]],
        [["MatMul", ["Transpose", {"perm": [1, 0]}, "b"], ["Transpose", {"perm": [1, 0]}, "a"]]],
    )
    drop = rule([["Transpose", {"perm": [1, 0]}, ["MatMul", "a", "b"]]], [["MatMul", "a", "b"]])
    assert [match.rule for match in everything(matcher([right, drop]), egraph)] == [right]


def test_a_rule_that_wants_a_bound_is_left_out() -> None:
    """The plain rewriter, which sees the one way in which a Tanh was made, applies it at the same place."""
    nodes = [source((2, 3), "x"), source((2, 1), "s")]
    nodes.append(apply("Tanh", nodes, 1))
    nodes.append(apply("Add", nodes, 0, 2))
    nodes.append(apply("Softmax", nodes, 3, axis=-1))
    graph, shift = graph_of(nodes, [0, 1], 4), library.load().get("drop-softmax-shift")
    assert Rewriter([shift]).matches(graph).counts == (1,)
    assert everything(matcher([shift]), ModelEGraph.from_graph(graph)) == []
