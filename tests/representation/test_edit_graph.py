"""The small graph around an edit is what stands there before the edit and what stands there after it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.square_graphs import graph_of, node, source
from support.strategies import graphs
from support.walks import REWRITER

from rlflow import zoo
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.node import Ref
from rlflow.ir.preview import preview, runs
from rlflow.onnx_io import from_onnx
from rlflow.representation.edit_graph import ADDED, FAR, NEAR, REMOVED, EditGraph, EditGraphs
from rlflow.rules.matching.match import Match


def edges_in(graph: Graph, places: dict[int, int]) -> set[tuple[int, int]]:
    """The edges between those of these nodes that the graph has."""
    there = [i for i in places if i in graph.nodes]
    return {(places[s], places[r]) for r in there for s in graph.nodes[r].sources if s in places and s in graph.nodes}


def check(graph: Graph, match: Match, edit_graphs: EditGraphs) -> EditGraph:
    """Compare the graph around a match with the graph and with the one after the rewrite."""
    edit = preview(graph, *REWRITER.edit(graph, match))
    around, after = edit_graphs.around(graph, edit), REWRITER.apply(graph, match)
    places = {identifier: place for place, identifier in enumerate(around.nodes)}
    of_role = {role: {i for i, r in zip(around.nodes, around.roles, strict=True) if r == role} for role in range(4)}
    assert len(places) == len(around.nodes) == len(around.roles) == len(around.outside_readers)
    assert of_role[REMOVED] == {i for i, n in graph.nodes.items() if runs(n) and i not in after.nodes}
    assert of_role[ADDED] == {i for i, n in after.nodes.items() if runs(n) and i not in graph.nodes}
    assert edit.touched <= of_role[NEAR]
    assert all(runs(graph.nodes[i]) and i in after.nodes for i in of_role[NEAR] | of_role[FAR])
    for told, side in ((around.before, graph), (around.after, after)):
        assert len(set(told)) == len(told)
        assert set(told) == edges_in(side, places)
    for identifier, outside in zip(around.nodes, around.outside_readers, strict=True):
        assert outside == sum(reader not in places for reader in graph.consumers.get(identifier, ()))
    return around


@given(graphs(), st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 3))
def test_the_graph_around_any_edit_comes_true(graph, seed, reach, max_readers):
    rng, edit_graphs = np.random.default_rng(seed), EditGraphs(reach, max_readers)
    for _ in range(3):
        found = [match for matches in REWRITER.matches(graph) for match in matches]
        if not found:
            return
        match = found[int(rng.integers(len(found)))]
        check(graph, match, edit_graphs)
        graph = REWRITER.apply(graph, match)


@pytest.mark.parametrize("name", ["bert", "nasrnn"])
def test_the_graph_around_every_edit_of_a_model_comes_true(name):
    """Not vacuous: in some something goes, in some something comes, and something is always far."""
    graph = from_onnx(zoo.build(name, **dict(zoo.describe(name).small)))
    drawn = [check(graph, m, EditGraphs(2, 6)) for found in REWRITER.matches(graph) for m in found]
    for role in (REMOVED, ADDED, NEAR, FAR):
        assert any(role in around.roles for around in drawn)


@pytest.fixture
def row() -> Graph:
    """x -> Neg -> MatMul -> Relu -> Tanh -> Softmax, beside the product's second operand."""
    nodes = [source("x"), node("Neg", 0), node("MatMul", 1, 0), node("Relu", 2), node("Tanh", 3), node("Softmax", 4)]
    return graph_of(nodes, 5)


@pytest.mark.parametrize(
    ("reach", "wanted"),
    [
        (1, {3: REMOVED, 6: ADDED, 2: NEAR, 4: NEAR}),
        (2, {3: REMOVED, 6: ADDED, 2: NEAR, 4: NEAR, 1: FAR, 5: FAR}),
    ],
)
def test_nodes_are_met_up_to_the_reach(row, reach, wanted):
    """Relu gives way to Neg. Inputs do not run and are none of the nodes."""
    edit = preview(row, {6: node("Neg", 2)}, {Ref(3): Ref(6)})
    around = EditGraphs(reach, 6).around(row, edit)
    assert dict(zip(around.nodes, around.roles, strict=True)) == wanted
    named = [{(around.nodes[s], around.nodes[r]) for s, r in edges} for edges in (around.before, around.after)]
    assert {(2, 3), (3, 4)} <= named[0]
    assert {(2, 6), (6, 4)} <= named[1]
    assert not {(2, 3), (3, 4)} & named[1]


@pytest.mark.parametrize("max_readers", [2, 3])
def test_many_readers_are_counted_and_not_followed(max_readers):
    """A value that three nodes read; one of them is replaced."""
    graph = graph_of([source("x"), node("Neg", 0), node("Relu", 1), node("Tanh", 1), node("Tanh", 1)], 2, 3, 4)
    edit = preview(graph, {5: node("Tanh", 1)}, {Ref(2): Ref(5)})
    around = EditGraphs(2, max_readers).around(graph, edit)
    readers = dict(zip(around.nodes, around.outside_readers, strict=True))
    followed = max_readers == 3
    assert {3, 4} <= readers.keys() if followed else readers.keys().isdisjoint({3, 4})
    assert readers[1] == (0 if followed else 2)


@pytest.mark.parametrize("name", ["reach", "max_readers"])
def test_a_graph_of_nothing_is_refused(name):
    with pytest.raises(InputError, match=f"{name} must be at least 1, not 0"):
        EditGraphs(**{"reach": 2, "max_readers": 6, name: 0})
