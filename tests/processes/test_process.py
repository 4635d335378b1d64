"""Every formulation of the process: what it says can be chosen is what can be done, once and again, at one price."""

from typing import Any

import numpy as np
import pytest
from support.formulations import PROCESSES

from rlflow.environments.episode import Episode
from rlflow.environments.rewards import RewardConfig, reward_of
from rlflow.ir.structural_hash import structural_hash
from rlflow.processes.process import Process
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import replay

STEPS = 6


@pytest.fixture(params=sorted(PROCESSES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def played(process: Process[Any, Any], seed: int = 0, steps: int = STEPS, reward: str = "incremental") -> Episode:
    """An episode of drawn choices."""
    episode = Episode(process, reward_of(RewardConfig(reward)), steps, [process.start()])
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        choices = list(process.choices(episode.state))
        episode.act(choices[int(rng.integers(len(choices)))])
    return episode


def flat(observation: Any) -> list[list[float]]:
    """All numbers of an observation."""
    if isinstance(observation, dict):
        return [numbers for part in observation.values() for numbers in flat(part)]
    if isinstance(observation, tuple):
        return [numbers for part in observation for numbers in flat(part)]
    return [np.asarray(observation, np.float64).ravel().tolist()]


def test_an_episode_is_repeated_by_its_choices_and_replayed_from_its_record(name: str) -> None:
    """In a process of its own, to the last bit of what is observed; not vacuous: other choices lead elsewhere."""
    process = PROCESSES[name]()
    one, same, other = played(process), played(PROCESSES[name]()), played(process, seed=1)
    hashes = [state.hash for state in one.visited]
    assert hashes == [state.hash for state in same.visited] != [state.hash for state in other.visited]
    assert [*one.steps()] == [*same.steps()]
    assert flat(process.observe(one.state)) == flat(same.process.observe(same.state))

    prices, rewriter = process.evaluator.cost_model, process.evaluator.rewriter
    steps = tuple(one.steps())
    record = Trajectory(hashes[0], one.visited[0].runtime_ms, prices.name, "", steps, matching=rewriter.matching)
    graphs = replay(one.visited[0].graph, record, rewriter)  # of one choice, several, where it takes a whole class
    visited = [next(graph for graph in graphs if structural_hash(graph) == hash_) for hash_ in hashes]
    assert next(graphs, None) is None, "the record ends where the episode does"
    assert [prices.runtime_ms(graph) for graph in visited] == [state.runtime_ms for state in one.visited]
    saved = 100.0 * (one.visited[0].runtime_ms - one.state.runtime_ms) / one.visited[0].runtime_ms
    assert sum(step.reward for step in steps) == pytest.approx(saved, abs=1e-9)
    assert len({round(step.reward, 9) for step in steps}) > 1


def test_choices_are_exactly_what_can_be_taken_and_savings_what_that_brings(name: str) -> None:
    """Each choice after a few steps is the rewrites of its way, the first at its location; savings may be in any unit.

    Rewrites that lose together may lose less than each alone.
    """
    process = PROCESSES[name]()
    state, rewriter = played(process, steps=3).state, process.evaluator.rewriter
    matches, choices = rewriter.matches(state.graph), [*process.choices(state)]
    assert len(choices) == len(process.choices(state)) == len({*choices}) > 3
    savings, brought, alone = process.savings(state, choices), [], []
    for choice in choices:
        place = process.location(state, choice)
        after = process.step(state, choice)
        assert choice in process.choices(state)
        (first, graph), *others = [(at, passed.graph) for at, passed in process.way(state, choice, after)]
        assert first == place
        assert structural_hash(graph) == structural_hash(
            rewriter.apply(state.graph, matches[place.rule][place.location])
        )
        for at, passed in others:
            graph = rewriter.apply(graph, rewriter.matches(graph)[at.rule][at.location])
            assert structural_hash(graph) == structural_hash(passed)
        assert after.hash == structural_hash(graph)
        brought.append(state.runtime_ms - after.runtime_ms)
        alone.append(not others)
    unit = savings[int(np.abs(brought).argmax())] / brought[int(np.abs(brought).argmax())]
    exact = np.array(alone) | (np.array(brought) >= 0)
    near = {"rtol": 1e-5, "atol": 1e-5 * np.abs(savings).max()}
    np.testing.assert_allclose(savings[exact], unit * np.array(brought)[exact], **near)
    assert (savings[~exact] < 0).all()
    assert unit > 0

    number = len(choices)
    strangers = [number, -1] if isinstance(choices[0], int) else [(-1, 0), (choices[-1][0], 10**6), (10**6, 0)]
    assert not any(stranger in process.choices(state) for stranger in strangers)


def test_what_is_refused_changes_nothing_and_brings_the_horizon_nearer(name: str) -> None:
    process = PROCESSES[name]()
    episode = played(process, steps=2)
    episode.max_steps = 5
    state, recorded = episode.state, [*episode.steps()]
    stranger = -1 if isinstance(next(iter(process.choices(state))), int) else (-1, 0)
    refused = [episode.act(stranger) for _ in range(3)]
    assert [(one.reward, one.terminated, one.valid) for one in refused] == [(-100.0, False, False)] * 3
    assert [one.truncated for one in refused] == [False, False, True], "or an episode might never end"
    assert episode.state is state
    assert [*episode.steps()] == recorded
    assert episode.act(None) == (0.0, True, False, True)
    assert episode.state is state


def test_no_rewrite_and_no_price_is_counted_twice(name: str) -> None:
    """Whatever is asked of states once more, and whichever reward reads their costs."""
    process = PROCESSES[name]()
    episode = played(process, reward="weighted")
    for state in episode.visited:
        process.savings(state, [*process.choices(state)])
    before = process.evaluator.effort
    assert before.rewrites > 0
    for state in episode.visited:
        assert state.cost.runtime_ms == state.runtime_ms
        process.observe(state)
        process.choices(state)
        assert state.hash == structural_hash(state.graph)
    episode.act(None)
    after = process.evaluator.effort
    assert (after.rewrites, after.prices_asked) == (before.rewrites, before.prices_asked)
