"""A step as a reward sees it."""

from dataclasses import dataclass

from rlflow.cost.base import Cost
from rlflow.environments.transition import Transition
from rlflow.step_reward import StepChange


@dataclass
class State:
    """A graph that is told by what it costs."""

    cost: Cost


def test_a_transition_knows_its_number_and_what_it_changed_in_percent_of_the_start() -> None:
    """Start, before and after differ in both figures, so that none can stand for another."""
    prices = ((8.0, 400), (7.0, 900), (6.0, 500), (4.0, 300))
    states = [State(Cost(runtime_ms, 10, bytes_moved, 5, 0)) for runtime_ms, bytes_moved in prices]
    third = Transition(states, ended=True)
    assert third.step == 3
    assert third.change == StepChange(
        saved=25.0, cost=50.0, improvement=50.0, ended=True, memory_saved=50.0, latency_saved=third.change.latency_saved
    )
    first = Transition(states[:2], ended=False)
    assert (first.step, first.change.saved, first.change.ended) == (1, 12.5, False)
