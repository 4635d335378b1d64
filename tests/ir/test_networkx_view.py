"""The networkx view: everything that tells graphs apart is in it, names and numbers are not."""

from support.square_graphs import graph_of, node, random_graph, renumbered, source, weight

from rlflow.ir import structural_hash
from rlflow.ir.networkx_view import isomorphic, to_networkx


def test_nodes_and_edges() -> None:
    view = to_networkx(graph_of([source(), weight(), node("Add", 0, 1), node("Mul", 2, 2)], 3))
    assert {n: d["op"] for n, d in view.nodes(data=True)} == {
        0: "Input",
        1: "Weight",
        2: "Add",
        3: "Mul",
        ("output", 0): "Output",
    }
    assert sorted((a, b, d["operand"]) for a, b, d in view.edges(data=True) if b in (2, 3)) == [
        (0, 2, 0),
        (1, 2, 1),
        (2, 3, 0),
        (2, 3, 1),
    ]


def test_renumbered_graphs_are_isomorphic() -> None:
    for seed in range(5):
        graph = random_graph(seed, size=10)
        assert isomorphic(graph, renumbered(graph, seed))


def test_operand_order_and_weights_tell_apart() -> None:
    base = graph_of([source(), weight(), node("Sub", 0, 1)], 2)
    assert not isomorphic(base, graph_of([source(), weight(), node("Sub", 1, 0)], 2))
    assert not isomorphic(base, graph_of([source(), weight("v"), node("Sub", 0, 1)], 2))
    assert not isomorphic(base, graph_of([source(), weight(), node("Add", 0, 1)], 2))


def test_inputs_and_outputs_are_told_apart_by_position() -> None:
    base = graph_of([source(), source("z"), node("Sub", 0, 1)], 2, 0)
    assert not isomorphic(base, graph_of([source(), source("z"), node("Sub", 1, 0)], 2, 0))
    assert not isomorphic(base, graph_of([source(), source("z"), node("Sub", 0, 1)], 0, 2))


def test_sharing_counts() -> None:
    shared = graph_of([source(), node("Relu", 0), node("Add", 1, 1)], 2)
    twice = graph_of([source(), node("Relu", 0), node("Relu", 0), node("Add", 1, 2)], 3)
    assert not isomorphic(shared, twice)
    assert structural_hash(shared) != structural_hash(twice)
