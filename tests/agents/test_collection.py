"""Rollouts of real rewrites: what the world model is fitted on must be what happened."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rlflow import zoo
from rlflow.agents.collection import Collection, CollectionConfig, collect
from rlflow.cost.analytic import AnalyticCost
from rlflow.environments import EnvironmentConfig, RewardConfig, SubstitutionEnv
from rlflow.environments.end_to_end import EndToEnd
from rlflow.errors import InputError
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import from_onnx
from rlflow.ops.registry import OPERATORS
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.replay import replay

CONFIG = CollectionConfig(episodes=6, terminate_probability=0.1)


def new_env() -> SubstitutionEnv:
    graph = from_onnx(zoo.build("tiny_merge"))
    return SubstitutionEnv(graph, library.load(), AnalyticCost(), config=EnvironmentConfig(max_steps=8))


@pytest.fixture(scope="module")
def collected() -> Collection:
    return collect(new_env(), CONFIG, seed=3)


def same(first: Collection, second: Collection) -> bool:
    """Equal episodes and trajectories; graphs follow from the hashes."""
    episodes = zip(first.episodes, second.episodes, strict=True)
    arrays = [pair for x, y in episodes for pair in zip(vars(x).values(), vars(y).values(), strict=True)]
    equal = all(np.array_equal(a, b, equal_nan=True) for a, b in arrays)
    return equal and first.trajectories == second.trajectories and first.places == second.places


def test_episodes_are_not_vacuous(collected: Collection):
    """Both trajectories to end, rewrites that change the cost, and graphs that are met twice."""
    ends = [bool(episode.terminated[-1]) for episode in collected.episodes]
    assert len(ends) == CONFIG.episodes
    assert set(ends) == {True, False}
    assert any(np.ptp(episode.cost) > 0 for episode in collected.episodes)
    visits = sum(len(episode.cost) for episode in collected.episodes)
    assert 3 < len(collected.graphs) < visits


def test_rewards_add_up_to_the_improvement(collected: Collection):
    for episode in collected.episodes:
        assert episode.reward.sum() == pytest.approx(100.0 - episode.cost[-1], abs=1e-3)


def test_memory_adds_up_to_what_is_left_of_it(collected: Collection):
    """Not vacuous: rewrites change the memory accesses, and otherwise than the price."""
    graph, rewriter, cost_model = from_onnx(zoo.build("tiny_merge")), Rewriter(library.load().rules), AnalyticCost()
    before = cost_model.cost(graph).bytes_moved
    for episode, trajectory in zip(collected.episodes, collected.trajectories, strict=True):
        *_, last = replay(graph, trajectory, rewriter)
        saved_percent = 100.0 * (before - cost_model.cost(last).bytes_moved) / before
        assert episode.memory_saved.sum() == pytest.approx(saved_percent, abs=1e-3)
    found = np.concatenate([[e.memory_saved, e.reward] for e in collected.episodes], axis=1)
    assert not np.allclose(*found)


def test_timed_rollouts_differ_in_nothing_else(collected: Collection):
    """The random agent meets the same graphs, of which the last of each episode is timed, once."""
    timed = EndToEnd(RewardConfig("end_to_end", every=None, rounds=5, runs_per_round=1))
    measured = collect(new_env(), replace(CONFIG, episodes=2), seed=3, timed=timed)
    for episode, by_price in zip(measured.episodes, collected.episodes, strict=False):
        for name in vars(episode).keys() - {"graph_index", "latency_saved"}:
            assert np.array_equal(getattr(episode, name), getattr(by_price, name))
        assert np.isnan(by_price.latency_saved).all()
        assert np.isnan(episode.latency_saved).tolist() == [True] * (episode.num_steps - 1) + [False]
    ends = {structural_hash(from_onnx(zoo.build("tiny_merge")))}
    ends |= {list(measured.places)[episode.graph_index[-1]] for episode in measured.episodes}
    assert timed.figures()["measurements"] == len(ends) - 1 > 0


def test_trajectories_replay_to_the_graphs_of_the_episodes(collected: Collection):
    """Hash by hash, on a graph and a rewriter that know nothing of the collection."""
    graph, rewriter = from_onnx(zoo.build("tiny_merge")), Rewriter(library.load().rules)
    for episode, trajectory in zip(collected.episodes, collected.trajectories, strict=True):
        places = [collected.places[structural_hash(g)] for g in replay(graph, trajectory, rewriter)]
        ended = [places[-1]] if episode.terminated[-1] else []
        assert places + ended == episode.graph_index.tolist()


def test_actions_are_valid_under_the_counts(collected: Collection):
    env = new_env()
    for episode in collected.episodes:
        for (rule, location), counts in zip(episode.action, episode.counts[:-1], strict=True):
            assert env.actions.is_valid(counts, int(rule), int(location))


def test_the_same_seed_gives_the_same_episodes(collected: Collection):
    assert same(collect(new_env(), CONFIG, seed=3), collected)
    assert not same(collect(new_env(), CONFIG, seed=4), collected)


def test_files_that_do_not_belong_together_are_refused(collected: Collection, tmp_path: Path):
    collected.save(tmp_path, new_env())
    trajectories = tmp_path / "trajectories.jsonl"
    trajectories.write_text("".join(trajectories.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(InputError, match="do not belong together; run collect_rollouts"):
        Collection.load(tmp_path, new_env())


def test_a_collection_in_another_vocabulary_is_not_continued(
    collected: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """An operator came in between: index 7 of the episodes on disk is not index 7 of those to come."""
    collect(new_env(), CONFIG, seed=3, checkpoint=tmp_path / "kept")
    collected.save(tmp_path, new_env())
    monkeypatch.setitem(OPERATORS, "Abacus", replace(OPERATORS["Relu"], name="Abacus"))
    with pytest.raises(InputError, match="has another vocabulary; run collect_rollouts"):
        Collection.load(tmp_path, new_env())
    numbers: list[int] = []
    afresh = collect(
        new_env(), CONFIG, seed=3, checkpoint=tmp_path / "kept", on_episode=lambda number, _: numbers.append(number)
    )
    assert numbers == list(range(CONFIG.episodes))
    assert len(afresh.episodes) == len(collected.episodes)
    assert (afresh.graphs[0].op != collected.graphs[0].op).any()


def test_no_episode_begins_after_the_time_limit():
    limited = CollectionConfig(episodes=1000, time_limit_s=0.2, terminate_probability=0.1)
    assert 0 < len(collect(new_env(), limited, seed=0).episodes) < 1000


def test_rollouts_carry_the_rules_and_round_trip(collected: Collection, tmp_path: Path):
    env = new_env()
    collected.save(tmp_path, env)
    again = Collection.load(tmp_path, env)
    assert same(again, collected)
    rollouts = again.rollouts(env)
    assert rollouts.rule_ids == tuple(rule.id for rule in env.library.rules)
    assert rollouts.library_hash == env.library.hash
    assert rollouts.num_steps == sum(len(trajectory.steps) for trajectory in again.trajectories) + sum(
        bool(episode.terminated[-1]) for episode in again.episodes
    )
