"""The networkx view: everything that tells graphs apart is in it, names and numbers are not."""

from support.square_graphs import graph_of, node, random_graph, renumbered, source, weight

from rlflow.ir import Graph, structural_hash
from rlflow.ir.networkx_view import isomorphism_classes, to_networkx, top_down_layout


def isomorphic(a: Graph, b: Graph) -> bool:
    return isomorphism_classes([a, b]) == [[0, 1]]


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


def test_isomorphic_graphs_are_grouped_in_the_order_of_their_first() -> None:
    """Equal nodes alone do not make a class: the last two graphs differ in their edges."""
    one, other = random_graph(1, size=8), random_graph(2, size=8)
    left, right = [graph_of([source(), source("z"), node("Sub", *operands)], 2) for operands in ((0, 1), (1, 0))]
    graphs = [one, other, renumbered(one, 5), left, right, renumbered(other, 6), renumbered(one, 7)]
    assert isomorphism_classes(graphs) == [[0, 2, 6], [1, 5], [3], [4]]
    assert isomorphism_classes([]) == []


def test_layout_in_closed_form() -> None:
    """A diamond with a tail, and the long edge of a residual connection from its top to its end."""
    assert top_down_layout([(), (0,), (0,), (1, 2), (3, 0)]) == [(0.0, 0), (-0.5, 1), (0.5, 1), (0.0, 2), (0.0, 3)]


def test_what_is_read_stands_above_and_no_two_nodes_on_each_other() -> None:
    for seed in range(5):
        graph = random_graph(seed)
        order = sorted(graph.nodes)
        operands = [[order.index(s) for s in graph.nodes[i].sources] for i in order]
        layout = top_down_layout(operands)
        assert len(set(layout)) == len(layout)
        assert all(layout[s][1] < layout[i][1] for i, sources in enumerate(operands) for s in sources)


def test_neighbours_stand_in_the_order_of_what_they_read() -> None:
    """Numbered the other way round, both pairs would cross."""
    columns = [column for column, _ in top_down_layout([(), (), (1,), (0,)])]
    assert columns == [-0.5, 0.5, 0.5, -0.5]
