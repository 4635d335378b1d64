"""Derivations of the forms of a value: their lengths, their direction, and dead ends."""

from collections.abc import Mapping

import numpy as np
from support.rewrites import graph_of
from support.strategies import source, weight
from support.walks import LIBRARY, add, leaf

from rlflow.egraph.derivations import Derivations
from rlflow.egraph.egraph import ENodeId, Target
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.ir import Node, Ref, TensorType

RULE = LIBRARY.get("relu-before-transpose")
"""The rule that all uses name: which one it is makes no difference to derivations."""

FORM = TensorType("float32", (4,))


def unary(op: str, operand: int) -> Node:
    return Node(op, (Ref(operand),), {}, (FORM,), ("",))


def explored(*uses: tuple[str, str]) -> tuple[ModelEGraph, Mapping[str, ENodeId]]:
    """The forms of one value, called by their operators on one input, and uses from form to form."""

    def build(nodes: list[Node]) -> list[Ref]:
        return [add(nodes, "Relu", leaf(nodes, source((4,), "x")))]

    egraph = ModelEGraph.from_graph(graph_of(build))
    x, relu = 0, 1
    numbers = {"Relu": relu}
    for start, end in uses:
        target = Target((unary(end, 0),), (Ref(1),))
        egraph.use(RULE, [numbers[start]], [numbers[start]], {"x": x}, target)
        egraph.rebuild()
        known = egraph.known(unary(end, 0), [x])
        assert known is not None
        numbers[end] = known
    return egraph, numbers


def test_a_derivation_is_as_long_as_its_uses_and_has_a_direction() -> None:
    egraph, number = explored(("Relu", "Tanh"), ("Tanh", "Exp"), ("Exp", "Neg"))
    lengths = Derivations(egraph, {}).lengths(number["Exp"])
    assert lengths == {number["Exp"]: 0, number["Tanh"]: 1, number["Relu"]: 2}


def test_a_use_that_brings_nothing_new_leads_back() -> None:
    """The second use finds the first's form: the e-graph learns nothing, and that form can be derived again."""
    egraph, number = explored(("Relu", "Tanh"), ("Tanh", "Relu"))
    assert len(egraph.uses) == len(egraph.idle_uses) == 1
    assert Derivations(egraph, {}).lengths(number["Relu"]) == {number["Relu"]: 0, number["Tanh"]: 1}


def test_the_shorter_of_two_derivations_counts_unless_it_meets_a_dead_end() -> None:
    egraph, number = explored(("Relu", "Exp"), ("Relu", "Tanh"), ("Tanh", "Exp"), ("Exp", "Neg"))
    value = egraph.find(number["Neg"])
    derivations = Derivations(egraph, {value: number["Neg"]})
    assert derivations.lengths(number["Neg"])[number["Relu"]] == 2
    derivations.avoid([number["Exp"]])
    assert derivations.lengths(number["Neg"])[number["Relu"]] > 1000


def test_operands_that_cannot_reach_their_goals_are_a_dead_end() -> None:
    """The target reads Exp(x), whose class should become Sigmoid(x), and no use leads there."""
    egraph, number = explored(("Relu", "Tanh"))
    sigmoid = egraph.insert(unary("Sigmoid", 0), [0])
    target = Target((unary("Exp", 0), unary("Neg", 1)), (Ref(2),))
    use = egraph.use(RULE, [number["Tanh"]], [number["Tanh"]], {"x": 0}, target)
    assert use is not None
    inner, outer = use.made
    egraph.unite(sigmoid, inner)
    egraph.rebuild()
    free, bound = Derivations(egraph, {}), Derivations(egraph, {egraph.find(inner): egraph.find_node(sigmoid)})
    assert (free.detour(use), bound.detour(use)) == (0, 1000)
    assert free.lengths(outer)[number["Tanh"]] == 1
    assert bound.lengths(outer)[number["Tanh"]] == 1001


def test_a_derivation_of_any_constant_is_one_of_the_constant() -> None:
    """Both uses find the value constant; the one that leads to another constant than the goal makes no dead end."""
    egraph, number = explored(("Relu", "Tanh"))
    for start, value in (("Relu", 1.0), ("Tanh", 2.0)):
        target = Target((weight(np.full(4, value, np.float32)),), (Ref(1),))
        egraph.use(RULE, [number[start]], [number[start]], {"x": 0}, target)
    goal = egraph.constant_form(number["Relu"])
    derivations = Derivations(egraph, {egraph.find(goal): goal})
    assert derivations.lengths(goal) == {goal: 0, number["Relu"]: 1, number["Tanh"]: 1}
    assert [derivations.detour(use) for use in egraph.uses] == [0, 0, 0]
