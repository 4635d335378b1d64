"""Greedy search ends where no rewrite is an improvement."""

from support.searches import make

from rlflow.optimiser import Budget


def test_greedy_ends_at_a_fixpoint(shipped, bert):
    result = make("greedy", shipped).optimise(bert, Budget())
    again = make("greedy", shipped).optimise(result.best, Budget())
    assert again.trajectory.steps == ()
    runtimes = [result.start_ms, *(s.runtime_ms for s in result.trajectory.steps)]
    assert runtimes == sorted(runtimes, reverse=True)
    assert len(runtimes) > 3
