"""A layout says what every node is and which nodes it reads; an edit's is that of the graph that it made."""

from dataclasses import replace

import numpy as np
from support.square_graphs import graph_of, node, random_graph, source, weight

from rlflow.ir import Graph, Ref, structural_hash


def test_operands_are_those_read_at_run_time_each_once() -> None:
    graph = graph_of([source(), weight(), node("Relu", 0), node("Sum", 2, 1, 0, 2), node("Add", 3, 2)], 4)
    assert graph.order == (2, 3, 4)
    assert graph.layout.counts.tolist() == [1, 2, 2]
    assert graph.layout.operands.tolist() == [0, 2, 0, 3, 2]
    assert graph.places().tolist()[2:] == [1, 2, 3]


def test_equal_nodes_have_equal_contents() -> None:
    """Whichever nodes they read; but not where they read them in another place, or another weight."""
    nodes = [source(), weight(), weight("ww"), node("Relu", 0), node("Add", 3, 1), node("Add", 4, 1)]
    nodes += [node("Add", 1, 5), node("Add", 6, 2), node("Add", 7, 7), node("Add", 8, 5)]
    contents = dict(zip((graph := graph_of(nodes, 9)).order, graph.layout.contents.tolist(), strict=True))
    assert contents[4] == contents[5]
    assert len(set(contents.values())) == len(contents) - 1


def test_what_was_forgotten_is_derived_again() -> None:
    """Of the graph itself, and of one that was edited from it."""
    before = graph_of([source(), node("Relu", 0), node("Exp", 1)], 2)
    after = before.replace({3: node("Tanh", 0)}, {Ref(1): Ref(3)})
    known = [(graph.order, graph.layout.contents.tolist(), structural_hash(graph)) for graph in (before, after)]
    for graph in (before, after):
        graph.forget()
        assert not {"_depth_first", "layout"} & vars(graph).keys()
    again = [(graph.order, graph.layout.contents.tolist(), structural_hash(graph)) for graph in (after, before)]
    assert again[::-1] == known


def test_after_an_edit_it_is_as_if_made_anew() -> None:
    """And so are the order and the hash; more than half of the edits take pieces from the parent."""
    taken = edits = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        graph = random_graph(seed)
        for _ in range(10):
            running = [i for i in graph.order if len(graph.nodes[i].types) == 1]
            if not running:
                break
            target = running[int(rng.integers(len(running)))]
            operands = [r for r in graph.nodes[target].inputs if r is not None]
            new = graph.next_id
            assert structural_hash(graph)  # so that the child finds a layout to start from
            child = graph.replace({new: node("Add", operands[-1], operands[0])}, {Ref(target): Ref(new)})
            assert_as_made_anew(child)
            taken += any(isinstance(piece, range) and len(piece) for piece in child.pieces)
            edits += 1
            graph = child
    assert taken > edits / 2 > 100


def assert_as_made_anew(graph: Graph) -> None:
    anew = replace(graph, edit=None)
    assert (graph.order, graph.positions()) == (anew.order, anew.positions())
    assert structural_hash(graph) == structural_hash(anew)
    for name in ("contents", "counts", "operands"):
        assert np.array_equal(getattr(graph.layout, name), getattr(anew.layout, name))
