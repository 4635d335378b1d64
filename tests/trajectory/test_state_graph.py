"""The states that several sources visited, as one graph: shared states are one node, ways meet, pieces make a way."""

import networkx as nx
import pytest

from rlflow.errors import InputError
from rlflow.trajectory.record import Step, Trajectory
from rlflow.trajectory.state_graph import (
    Visit,
    Way,
    best_of,
    rewrites_to,
    sources_of,
    state_graph,
    states_of,
    way_of,
)

SAVED = {"start": 0.0, "a": -1.0, "b": 2.0, "ab": 3.0, "abc": 7.0}


def way(*states: str) -> Way:
    return [Visit(state, SAVED[state], f"to {state}") for state in states]


@pytest.fixture
def states() -> nx.DiGraph:
    """One source goes by a, another by b; both meet at ab, from where the first went back and the second on."""
    walked = {"one": [way("start", "a", "ab", "a")], "other": [way("start", "b", "ab"), way("ab", "abc")]}
    return state_graph("start", walked)


def test_a_state_that_two_sources_visit_is_one_node(states: nx.DiGraph) -> None:
    assert set(states) == {*SAVED}
    assert {state: states.nodes[state]["saved_percent"] for state in states} == SAVED
    assert states.nodes["ab"]["sources"] == "one,other"
    assert sources_of(states) == ["one", "other"]
    assert states_of(states, "one") == {"start", "a", "ab"}
    assert states_of(states, "other") == {"start", "b", "ab", "abc"}
    assert states_of(states, "on") == set()


def test_an_edge_is_a_rewrite_in_its_direction(states: nx.DiGraph) -> None:
    assert set(states.edges) == {("start", "a"), ("a", "ab"), ("ab", "a"), ("start", "b"), ("b", "ab"), ("ab", "abc")}
    assert states.edges["ab", "a"] == {"rule": "to a", "rewrites": 1, "sources": "one"}


def test_the_best_state_is_reached_by_pieces_of_several_ways(states: nx.DiGraph) -> None:
    """No way leads from the start to abc as a whole: one ends before it, another begins there."""
    assert best_of(states, states_of(states, "other")) == "abc"
    assert best_of(states, states_of(states, "one")) == "ab"
    assert rewrites_to(states) == {"start": 0, "a": 1, "b": 1, "ab": 2, "abc": 3}
    assert "start" not in rewrites_to(state_graph("abc", {"other": [way("start", "abc")]}))


def test_an_edge_may_be_several_rewrites() -> None:
    """Three at once lead further than two, one by one."""
    short, long = [Visit("x", 0.0), Visit("y", 1.0, rewrites=3)], [Visit(state, 1.0) for state in ("x", "z", "y")]
    assert rewrites_to(state_graph("x", {"one": [short]}))["y"] == 3
    assert rewrites_to(state_graph("x", {"one": [short], "other": [long]}))["y"] == 2


def test_a_comma_in_a_name_is_refused() -> None:
    with pytest.raises(InputError, match="separated by commas: a,b"):
        state_graph("a", {"a,b": []})


def test_of_states_that_save_the_same_the_first_is_the_best() -> None:
    same = state_graph("x", {"one": [[Visit("x", 1.0), Visit("y", 1.0)]]})
    assert best_of(same, same) == "x"


def test_a_trajectory_is_the_way_of_its_states() -> None:
    steps = (Step("merge", 0, "b", 8.0, 20.0), Step("split", 3, "c", 9.0, -10.0))
    record = Trajectory("a", 10.0, "analytic", "library", steps)
    assert way_of(record) == [Visit("a", 0.0), Visit("b", 20.0, "merge"), Visit("c", 10.0, "split")]
    with pytest.raises(InputError, match="whose price is 0"):
        way_of(Trajectory("a", 0.0, "analytic", "library", ()))


def test_it_can_be_written_and_read_by_others(states: nx.DiGraph) -> None:
    read = nx.parse_graphml("\n".join(nx.generate_graphml(states)))
    assert dict(read.nodes(data=True)) == dict(states.nodes(data=True))
    assert {(a, b): data for a, b, data in read.edges(data=True)} == {
        (a, b): data for a, b, data in states.edges(data=True)
    }
