"""A step as a reward sees it."""

from dataclasses import dataclass

from rlflow.environments.transition import Transition


@dataclass
class State:
    """A graph that is told by what it costs."""

    graph: str
    cost: str


def test_a_transition_knows_its_number_and_three_of_its_states() -> None:
    states = [State(name, f"cost of {name}") for name in "abcd"]
    third = Transition(states, ended=False)
    assert third.step == 3
    assert (third.start, third.before, third.after) == ("cost of a", "cost of c", "cost of d")
    first = Transition(states[:2], ended=True)
    assert (first.step, first.before, first.after) == (1, first.start, "cost of b")
