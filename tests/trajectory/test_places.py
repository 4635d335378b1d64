"""Where steps took place, followed by hand and on recorded episodes."""

import pytest
from support.episodes import record
from support.square_graphs import graph_of, node, source, weight

from rlflow.ir import Graph
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.places import Place, places
from rlflow.trajectory.replay import replay


def test_a_step_on_what_another_made_is_traced_to_the_first_graph(shipped: Library) -> None:
    """((x u) v) w becomes (x u) (v w), then x (u (v w)): the second step replaces what the first one made, and so both
    lie at the last product; only the second one's first product is its own.
    """
    nodes = [source("x"), weight("u"), weight("v"), weight("w")]
    nodes += [node("MatMul", 0, 1, name="a"), node("MatMul", 4, 2, name="b"), node("MatMul", 5, 3, name="c")]
    graph = graph_of(nodes, 6)
    rewriter = Rewriter([shipped.get("associate-weights")])
    trajectory = record(graph, rewriter, shipped.hash, 2, seed=0)
    *_, last = replay(graph, trajectory, rewriter)
    assert [last.nodes[i].op for i in last.order] == ["MatMul"]
    found = places(graph, trajectory, rewriter)
    assert found[1] == Place((4, 5, 6), (0,))
    assert set(found[0].before) < {4, 5, 6}
    assert found[0].after == (0,)


@pytest.mark.parametrize("seed", range(6))
def test_places_lie_in_both_graphs(bert: Graph, shipped: Library, seed: int) -> None:
    """Every operator of the last graph that the first has not was made by a step, and every step began somewhere."""
    rewriter = Rewriter(shipped.rules)
    trajectory = record(bert, rewriter, shipped.hash, 10, seed)
    *_, last = replay(bert, trajectory, rewriter)
    found = places(bert, trajectory, rewriter)
    assert len(found) == 10
    assert all(place.before and set(place.before) <= set(bert.order) for place in found)
    assert {last.order[i] for place in found for i in place.after} == {i for i in last.order if i not in bert.nodes}


def test_no_steps_have_no_places(bert: Graph, shipped: Library) -> None:
    rewriter = Rewriter(shipped.rules)
    assert places(bert, record(bert, rewriter, shipped.hash, 0, seed=0), rewriter) == []
