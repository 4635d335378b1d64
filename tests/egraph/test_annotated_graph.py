"""Graphs on their way through an e-graph: each value stays in its class, whatever is rewritten."""

import numpy as np
from support.egraphs import explored_by_walks
from support.rewrites import graph_of
from support.strategies import source
from support.walks import LIBRARY, SHARING, add, leaf

from rlflow.egraph.annotated_graph import AnnotatedGraph
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.ir import Node, Ref, structural_hash
from rlflow.rules.matching.rewriter import Location
from rlflow.rules.matching.sharing import SharingRewriter

STEPS = 6


def towers(nodes: list[Node]) -> list[Ref]:
    """Relus and transpositions of one input in different orders."""
    x = leaf(nodes, source((3, 4), "x"))
    first = add(nodes, "Relu", add(nodes, "Transpose", x, perm=(1, 0)))
    second = add(nodes, "Transpose", add(nodes, "Relu", x), perm=(1, 0))
    return [add(nodes, "Transpose", add(nodes, "Add", first, second), perm=(1, 0))]


def test_values_keep_their_classes_along_a_walk_and_steps_lead_there() -> None:
    """The walk is one of those that explored the e-graph, so that it never leaves it."""
    graph = graph_of(towers)
    egraph = explored_by_walks(graph, SHARING, np.random.default_rng(3), 1, STEPS + 1)
    rng, place = np.random.default_rng(3), AnnotatedGraph.begin(graph, egraph)
    for _ in range(STEPS):
        found = [
            (Location(rule, i), m) for rule, ms in enumerate(SHARING.matches(place.graph)) for i, m in enumerate(ms)
        ]
        location, match = found[int(rng.integers(len(found)))]
        after = place.taken(SHARING, location, match)
        assert after is not None
        for value in place.values():
            now = after.value(value)
            if now.node in after.graph.nodes:
                assert after.class_of(now) == place.class_of(value)
        place = after
    assert len(place.steps) == STEPS
    for location, reached in place.steps:
        graph = SHARING.apply(graph, SHARING.matches(graph)[location.rule][location.location])
        assert structural_hash(graph) == structural_hash(reached)


def test_a_step_out_of_the_egraph_is_not_taken() -> None:
    graph = graph_of(towers)
    place = AnnotatedGraph.begin(graph, ModelEGraph.from_graph(graph))
    matches = [(Location(r, i), m) for r, ms in enumerate(SHARING.matches(graph)) for i, m in enumerate(ms)]
    new = [step for step in matches if place.taken(SHARING, *step) is None]
    assert new


def test_the_value_that_replaced_another_is_found_through_merged_readers() -> None:
    graph = graph_of(towers)
    rewriter = SharingRewriter([LIBRARY.get("relu-before-transpose")])
    egraph = explored_by_walks(graph, rewriter, np.random.default_rng(0), 1, 1)
    ((match,),) = rewriter.matches(graph)
    after = AnnotatedGraph.begin(graph, egraph).taken(rewriter, Location(0, 0), match)
    assert after is not None
    (total,) = (i for i in after.graph.order if after.graph.nodes[i].op == "Add")
    one, other = after.graph.nodes[total].inputs
    assert one == other == after.value(match.roots[0])


def test_a_value_that_is_gone_does_not_run_and_reads_nothing() -> None:
    """A step on the way to what a use needs may leave nobody who reads a value that the use is to begin with."""

    def turned_twice(nodes: list[Node]) -> list[Ref]:
        x = leaf(nodes, source((3, 4), "x"))
        turned = add(nodes, "Transpose", add(nodes, "Transpose", x, perm=(1, 0)), perm=(1, 0))
        return [add(nodes, "Relu", turned)]

    graph = graph_of(turned_twice)
    rewriter = SharingRewriter([LIBRARY.get("cancel-transposes")])
    ((match,),) = rewriter.matches(graph)
    egraph = explored_by_walks(graph, rewriter, np.random.default_rng(0), 1, 1)
    before = AnnotatedGraph.begin(graph, egraph)
    after = before.taken(rewriter, Location(0, 0), match)
    assert after is not None
    missing = [value for value in before.values() if value.node not in after.graph.nodes]
    assert len(missing) == 2
    for gone in missing:
        assert before.runs(gone)
        assert not after.runs(gone)
        assert after.operands(gone) == []
