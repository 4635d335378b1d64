"""The figures of a graph of states: who visited what alone or with others, and the fewest rewrites to the best."""

from experiment.figures import visited_states
from experiment.states import overlap

from rlflow.trajectory.state_graph import Visit, Way, state_graph

SAVED = {"start": 0.0, "a": -1.0, "ab": 3.0, "abc": 7.0, "far": 1.0}


def way(*states: str) -> Way:
    return [Visit(state, SAVED[state]) for state in states]


WALKED = {"rollouts": [way("ab", "abc"), way("far")], "policy": [way("start", "a", "ab")], "greedy": [way("start")]}


def test_sources_are_compared_state_by_state():
    """The rollouts begin where the policy ends, so that their best state is three rewrites from the start; one of
    their states cannot be reached by any of these ways.
    """
    found = overlap(state_graph("start", WALKED))
    assert (found.states, found.edges) == (5, 3)
    rollouts, policy, greedy = (found.sources[name] for name in ("rollouts", "policy", "greedy"))
    assert (rollouts.states, rollouts.alone, rollouts.best_saved_percent, rollouts.rewrites_to_best) == (3, 2, 7.0, 3)
    assert (policy.states, policy.alone, policy.best_saved_percent, policy.rewrites_to_best) == (3, 1, 3.0, 2)
    assert (greedy.states, greedy.alone, greedy.best_saved_percent, greedy.rewrites_to_best) == (1, 0, 0.0, 0)
    assert rollouts.shared == {"policy": 1, "greedy": 0}
    assert policy.shared == {"rollouts": 1, "greedy": 1}
    alone = overlap(state_graph("ab", {"rollouts": WALKED["rollouts"]}))
    assert alone.sources["rollouts"].rewrites_to_best == 1


def test_the_best_state_may_be_out_of_reach():
    found = overlap(state_graph("start", {"greedy": [way("start")], "rollouts": [way("abc")]}))
    assert found.sources["rollouts"].rewrites_to_best is None


def test_the_picture_shows_each_state_that_can_be_reached_and_each_rewrite():
    """One panel a graph; the methods' states are drawn over those of the rollouts."""
    figure = visited_states({"one": state_graph("start", WALKED), "two": state_graph("ab", WALKED)})
    for axes, start, expected in (
        (figure.axes[0], "start", {(0, 0.0), (1, -1.0), (2, 3.0), (3, 7.0)}),
        (figure.axes[1], "ab", {(0, 3.0), (1, 7.0)}),
    ):
        lines, points = axes.collections
        assert {tuple(point) for point in points.get_offsets().tolist()} == expected, start
        assert len(lines.get_segments()) == len(expected) - 1
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["rollouts", "policy", "greedy"]
