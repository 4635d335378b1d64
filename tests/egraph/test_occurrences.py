"""Walks over an e-graph, and how far a change reaches."""

from support.strategies import source

from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.egraph.occurrences import Walk, distances
from rlflow.ir import Header, Ref, make_graph
from rlflow.ops import registry
from rlflow.rules.matching.discrimination_tree import outline, planted
from rlflow.rules.matching.variants import compile_variants
from rlflow.rules.rule import rule_from_json


def chain(*operators: str) -> ModelEGraph:
    """Unary operators, one after another; the class of each has its place, and 0 is the input."""
    nodes = [source((2, 2), "x")]
    for place, op in enumerate(operators):
        nodes.append(registry.apply(op, {}, [(Ref(place), nodes[place].types[0], False)]))
    outputs = [Ref(len(operators))]
    return ModelEGraph.from_graph(make_graph(dict(enumerate(nodes)), [0], outputs, ["y"], Header(17)))


def start(*sources: list):
    variants = [v for s in sources for v in compile_variants(rule_from_json("r", "test", [s], ["a"]))]
    return planted((number, v.depth, outline(v)) for number, v in enumerate(variants))


def test_each_member_of_a_class_is_entered_and_the_root_itself_alone() -> None:
    egraph = chain("Relu", "Tanh", "Neg", "Tanh")
    egraph.unite(1, 3)
    egraph.rebuild()
    tree = start(["Tanh", ["Relu", "a"]], ["Tanh", ["Neg", "a"]], ["Relu", "a"])
    walk = Walk(egraph, list(egraph.applications()))
    assert egraph.find_node(4) == 2, "Tanh of what is now one class is one application"
    assert [(o.variant, o.variables, o.applications) for o in walk.occurrences(tree, 2)] == [
        (0, (0,), (2, 1)),
        (1, (2,), (2, 3)),
    ]
    assert [o.variant for o in walk.occurrences(tree, 1)] == [2]
    assert [o.variant for o in walk.occurrences(tree, 2, deeper_than=2)] == []
    assert [o.variant for o in walk.occurrences(tree, 1, deeper_than=1)] == []


def test_a_variable_that_occurs_twice_is_one_class() -> None:
    nodes = [source((2, 2), "x"), source((2, 2), "y")]
    nodes.append(registry.apply("Add", {}, [(Ref(i), nodes[i].types[0], False) for i in (0, 1)]))
    egraph = ModelEGraph.from_graph(make_graph(dict(enumerate(nodes)), [0, 1], [Ref(2)], ["z"], Header(17)))
    tree = start(["Add", "a", "a"])
    assert Walk(egraph, [2]).occurrences(tree, 2) == []
    egraph.unite(0, 1)
    egraph.rebuild()
    assert len(Walk(egraph, [2]).occurrences(tree, 2)) == 1


def test_a_change_reaches_its_readers_step_by_step_even_around_a_cycle() -> None:
    egraph = chain("Relu", "Tanh", "Neg", "Sqrt")
    assert distances(egraph, [1], 2) == {2: 1, 3: 2}
    assert distances(egraph, [1], 9) == {2: 1, 3: 2, 4: 3}
    egraph.unite(1, 4)
    egraph.rebuild()
    assert distances(egraph, [1], 9) == {2: 1, 3: 2, 4: 3}
