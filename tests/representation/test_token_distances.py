"""Distances between matches: counted by hand, and by another library on drawn graphs."""

from collections.abc import Sequence

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.square_graphs import graph_of, node, source
from support.strategies import graphs
from support.walks import REWRITER
from support.zoo_names import SMALL

from rlflow import zoo
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.representation.token_distances import MatchDistances
from rlflow.representation.token_rollouts import FAR_AWAY

BERT = from_onnx(zoo.build("bert", **SMALL["bert"]))


def apart(graph: Graph, taken: Sequence[Sequence[int]], groups: Sequence[int] | None = None) -> list[list[int]]:
    numbers = np.array(range(len(taken)) if groups is None else groups, np.int64)
    return MatchDistances(graph, taken, numbers).groups_apart().tolist()  # type: ignore[no-any-return]


CHAIN = graph_of([source(), *(node("Relu", place, name=f"n{place}") for place in range(7))], 7)
"""x -> 1 -> 2 -> ... -> 7"""


def test_a_chain():
    """Of the matches that take 1, 2 and 3, 5 and 7; 7 is too far from 1 to be told how far."""
    assert apart(CHAIN, [[1], [2, 3], [5], [7]]) == [[0, 1, 4, 4], [1, 0, 2, 4], [4, 2, 0, 2], [4, 4, 2, 0]]
    assert FAR_AWAY == 4


def test_edges_count_in_both_directions_and_inputs_do_not():
    """Both branches read x, which is no way from one to the other; Add is one."""
    branches = graph_of([source(), node("Relu", 0), node("Tanh", 0), node("Add", 1, 2)], 3)
    assert apart(branches, [[1], [2], [3]]) == [[0, 2, 1], [2, 0, 1], [1, 1, 0]]
    split = graph_of([source(), node("Relu", 0), node("Tanh", 0)], 1, 2)
    assert apart(split, [[1], [2]]) == [[0, FAR_AWAY], [FAR_AWAY, 0]]


def test_the_nearest_of_a_group_counts():
    assert apart(CHAIN, [[1], [7], [4]], groups=[0, 0, 1]) == [[0, 3], [3, 0]]


def test_a_match_without_running_nodes_is_far_from_all_but_itself():
    """As one of stored tensors alone; node 0 is an input."""
    assert apart(CHAIN, [[], [0], [1]]) == [[0, 4, 4], [4, 0, 4], [4, 4, 0]]
    alone = MatchDistances(CHAIN, [[], [1], [2]], np.array([0, 1, 1]))
    assert alone.apart_from([0]).tolist() == [0, FAR_AWAY]
    assert alone.apart_from([2]).tolist() == [FAR_AWAY, 0]


def test_no_matches_and_no_nodes():
    assert apart(CHAIN, []) == []
    assert apart(graph_of([source()], 0), [[0], [0]]) == [[0, FAR_AWAY], [FAR_AWAY, 0]]


def by_networkx(graph: Graph, matches: Sequence[Sequence[int]], groups: np.ndarray) -> np.ndarray:
    """Shortest paths between all nodes, and the least over all pairs."""
    wired = networkx.Graph()
    wired.add_nodes_from(graph.order)
    wired.add_edges_from((source, at) for at in graph.order for source in graph.nodes[at].sources if source in wired)
    lengths = dict(networkx.all_pairs_shortest_path_length(wired))
    number = int(groups.max(initial=-1)) + 1
    result = np.where(np.eye(number, dtype=bool), 0, FAR_AWAY)
    for one, group in zip(matches, groups, strict=True):
        for other, other_group in zip(matches, groups, strict=True):
            found = [lengths[a].get(b, FAR_AWAY) for a in one for b in other if a in wired and b in wired]
            result[group, other_group] = min([result[group, other_group], *found])
    return result


def check(graph: Graph, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    matches = [match.nodes for found in REWRITER.matches(graph) for match in found]
    groups = np.unique(rng.integers(0, max(len(matches), 1), len(matches)), return_inverse=True)[1].astype(np.int64)
    measured = MatchDistances(graph, matches, groups)
    distance = measured.groups_apart()
    assert distance.dtype == np.int8
    assert (distance == by_networkx(graph, matches, groups)).all()
    assert (distance == distance.T).all()
    assert not distance.diagonal().any()
    alone = MatchDistances(graph, matches, np.arange(len(matches))).groups_apart()
    for number in range(len(matches)):
        wanted = [0 if g == groups[number] else alone[number, groups == g].min() for g in range(len(distance))]
        assert measured.apart_from([number]).tolist() == wanted
    return distance


@given(graphs(), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_drawn_graphs_as_networkx_counts(graph: Graph, seed: int):
    check(graph, seed)


def test_a_model_as_networkx_counts():
    """Not vacuous: all distances occur."""
    assert set(check(BERT, 0).flatten().tolist()) == set(range(FAR_AWAY + 1))


@pytest.mark.parametrize("seed", range(3))
def test_a_way_round_is_never_shorter(seed: int):
    """Between matches of one node: a to c is no further than a to b to c."""
    nodes = np.random.default_rng(seed).choice(BERT.order, 25, replace=False).tolist()
    distance = np.array(apart(BERT, [[one] for one in nodes]))
    assert (distance[:, None, :] <= distance[:, :, None] + distance[None, :, :]).all()
