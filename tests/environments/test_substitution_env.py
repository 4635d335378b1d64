"""The environment as docs/spaces.md describes it."""

import json
import subprocess
import sys
import warnings
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.environments import SUBSTITUTION, SubstitutionEnv
from rlflow.errors import InputError
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import from_onnx
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.replay import replay

INVALID = -100.0


def random_action(env, rng):
    counts = env.counts()
    rule = int(rng.choice(np.flatnonzero(counts)))
    return rule, int(rng.integers(counts[rule]))


def walk(env, steps, seed=0):
    """A random valid episode of so many steps: its hashes, rewards and runtimes."""
    rng = np.random.default_rng(seed)
    _, info = env.reset(seed=seed)
    hashes, rewards, runtimes = [env.graph_hash()], [], [info["runtime_ms"]]
    for _ in range(steps):
        _, reward, terminated, truncated, info = env.step(random_action(env, rng))
        hashes.append(env.graph_hash())
        rewards.append(reward)
        runtimes.append(info["runtime_ms"])
        if terminated or truncated:
            break
    return hashes, rewards, runtimes


@pytest.mark.parametrize("model", ["tiny_merge", "bert"])
def test_the_checker_of_gymnasium_is_satisfied(model, bert):
    """Every warning but the one on unbounded features (which are logarithms, without a natural bound)."""
    made = gymnasium.make(SUBSTITUTION, model=bert if model == "bert" else model, max_locations=20)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(made.unwrapped)
    texts = [str(w.message) for w in caught]
    assert [t for t in texts if "infinity" not in t] == []


def test_masks_are_prefixes_that_agree_with_the_matches(make_env):
    """Along an episode; L = 3, so that some rules match more often than there are locations. The other rewriter does
    not know of edits and so takes every graph for a new one.
    """
    env, rng = make_env(max_locations=3), np.random.default_rng(0)
    rewriter = Rewriter(env.library.rules)
    observation, info = env.reset(seed=0)
    beyond = 0
    for _ in range(15):
        found = rewriter.matches(replace(env.graph, edit=None))
        counts = np.array([min(3, len(m)) for m in found])
        assert np.array_equal(observation["counts"], counts)
        assert np.array_equal(observation["rule_mask"], [*(counts > 0), True])
        for rule, count in enumerate(counts):
            assert observation["location_mask"][rule].tolist() == [1] * count + [0] * (3 - count)
        assert info["matches_beyond_limit"] == sum(max(0, len(m) - 3) for m in found)
        beyond += info["matches_beyond_limit"]
        stock = env.action_masks()
        assert np.array_equal(stock[: len(counts) + 1], observation["rule_mask"])
        assert np.array_equal(stock[len(counts) + 1 :], [True, *(np.arange(1, 3) < max(counts.max(), 1))])
        observation, _, _, _, info = env.step(random_action(env, rng))
    assert beyond > 0


def test_every_unmasked_action_is_valid_and_no_other(make_env):
    """All (rule, location) pairs at the start: a masked one is refused, an unmasked one leads to another graph."""
    env = make_env(max_locations=4, max_steps=4 * len(make_env().library.rules))
    env.reset(seed=0)
    mask = env.actions.location_mask(env.counts())
    start = env.graph
    for rule in range(env.actions.num_rules):
        for location in range(4):
            if env.graph is not start:  # after a valid action; any other leaves all as it was
                env.reset(seed=0)
            before = start = env.graph
            _, reward, terminated, _, info = env.step((rule, location))
            assert not terminated
            assert info["valid"] == mask[rule, location]
            assert (env.graph is before) == (not mask[rule, location])
            assert (reward == INVALID) == (not mask[rule, location])


def test_an_invalid_action_changes_nothing(make_env):
    env = make_env()
    env.reset(seed=0)
    env.step(random_action(env, np.random.default_rng(0)))
    graph, trajectory, cost = env.graph, env.trajectory(), env.cost
    unmatched = int(np.flatnonzero(env.counts() == 0)[0])
    for action in [(unmatched, 0), (0, 19)]:
        _, reward, terminated, truncated, info = env.step(action)
        assert (reward, terminated, truncated, info["valid"]) == (INVALID, False, False, False)
        assert env.graph is graph
        assert env.cost is cost
        assert env.trajectory() == trajectory


def test_terminate_ends_the_episode_at_no_price(make_env):
    env = make_env()
    env.reset(seed=0)
    graph = env.graph
    _, reward, terminated, truncated, _ = env.step((env.actions.terminate, 0))
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert env.graph is graph
    assert env.trajectory().steps == ()


def test_terminate_pays_the_terminal_reward(make_env):
    env, rng = make_env(reward="terminal"), np.random.default_rng(1)
    env.reset(seed=0)
    rewards = [env.step(random_action(env, rng))[1] for _ in range(6)]
    _, last, terminated, _, _ = env.step((env.actions.terminate, 0))
    assert terminated
    assert rewards == [0.0] * 6
    start, now = env.start_cost.runtime_ms, env.cost.runtime_ms
    assert last == pytest.approx(100 * (start - now) / start, rel=1e-12)
    assert last != 0


@pytest.mark.parametrize("reward", ["incremental", "terminal"])
def test_the_horizon_truncates(make_env, reward):
    env, rng = make_env(max_steps=4, reward=reward), np.random.default_rng(0)
    env.reset(seed=0)
    results = [env.step(random_action(env, rng)) for _ in range(4)]
    assert [(terminated, truncated) for _, _, terminated, truncated, _ in results] == [(False, False)] * 3 + [
        (False, True)
    ]
    total = 100 * (env.start_cost.runtime_ms - env.cost.runtime_ms) / env.start_cost.runtime_ms
    assert sum(r for _, r, *_ in results) == pytest.approx(total, abs=1e-9)


def test_refused_actions_count_towards_the_horizon(make_env):
    """Otherwise an agent without masks could stay for ever."""
    env = make_env(max_steps=3)
    env.reset(seed=0)
    unmatched = int(np.flatnonzero(env.counts() == 0)[0])
    assert [env.step((unmatched, 0))[3] for _ in range(3)] == [False, False, True]


def test_rewards_add_up_to_the_improvement(make_env):
    env = make_env(max_steps=25)
    _, rewards, runtimes = walk(env, 25)
    assert len(rewards) == 25
    assert sum(rewards) == pytest.approx(100 * (runtimes[0] - runtimes[-1]) / runtimes[0], abs=25 * 1e-12 * 100)
    assert len({round(r, 9) for r in rewards}) > 5


def test_the_same_seed_gives_the_same_episode(make_env):
    first = walk(make_env(start_rewrites=5), 12, seed=3)
    assert walk(make_env(start_rewrites=5), 12, seed=3) == first
    assert walk(make_env(start_rewrites=5), 12, seed=4)[0] != first[0]


def test_one_environment_may_be_used_again(make_env):
    """What is remembered between episodes (matches, prices, features) must not show."""
    env = make_env()
    first = walk(env, 12, seed=3)
    walk(env, 12, seed=4)
    assert walk(env, 12, seed=3) == first


def start_hash(env, **reset):
    env.reset(**reset)
    return env.graph_hash()


def test_episodes_start_behind_random_rewrites(make_env):
    env = make_env(start_rewrites=4)
    origin = structural_hash(env._origin)
    starts = {start_hash(env, seed=seed) for seed in range(12)}
    assert len(starts) > 5
    assert start_hash(env, seed=0, options={"start_rewrites": 0}) == origin
    assert start_hash(env, seed=0, options={"start_rewrites": 3}) != origin
    assert env.trajectory().start_hash == env.graph_hash()
    observation, _ = env.reset(seed=1, options={"start_rewrites": 3})
    assert observation["cost"] == pytest.approx(100)


def test_a_trajectory_replays_to_the_same_hashes_and_runtimes(make_env, bert, shipped):
    env = make_env()
    hashes, _, runtimes = walk(env, 20)
    unmatched = int(np.flatnonzero(env.counts() == 0)[0])
    env.step((unmatched, 0))  # refused, so it must not be in the trajectory
    trajectory = env.trajectory()
    assert len(trajectory.steps) == 20
    graphs = list(replay(bert, trajectory, Rewriter(shipped.rules)))
    assert [structural_hash(g) for g in graphs] == hashes
    assert [AnalyticCost().runtime_ms(g) for g in graphs] == runtimes
    assert [s.runtime_ms for s in trajectory.steps] == runtimes[1:]
    assert trajectory.seed == 0


SCRIPT = """
import json, sys
import numpy as np
from rlflow.environments.make import substitution_env
from rlflow import zoo
model = zoo.build("bert", layers=1, hidden=32, heads=2, intermediate=64, sequence=8, vocabulary=50, positions=16)
env = substitution_env(model, max_locations=20, start_rewrites=3)
rng = np.random.default_rng(0)
observation, info = env.reset(seed=5)
seen = [env.graph_hash()]
for _ in range(15):
    counts = env.counts()
    rule = int(rng.choice(np.flatnonzero(counts)))
    observation, reward, _, _, info = env.step((rule, int(rng.integers(counts[rule]))))
    seen.append([env.graph_hash(), info["runtime_ms"], reward, float(observation["features"].sum()), counts.tolist()])
print(json.dumps(seen))
"""


def test_processes_agree_whatever_their_hash_seed():
    """Sets and dictionaries of names are in another order under another PYTHONHASHSEED."""
    answers = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1", "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "12345")
    ]
    assert answers[0] == answers[1]
    assert len(json.loads(answers[0])) == 16


def test_the_observation_is_the_graph(make_env):
    """Every edge of the arrays is an edge of the graph and the other way round, after every step."""
    env, rng = make_env(), np.random.default_rng(2)
    observation, _ = env.reset(seed=0)
    for _ in range(10):
        graph = env.graph
        identifiers = (*graph.inputs, *graph.order)
        nodes, edges = int(observation["num_nodes"][0]), int(observation["num_edges"][0])
        assert nodes == len(identifiers)
        assert (observation["op"][:nodes] > 0).all()
        assert not observation["op"][nodes:].any()
        assert not observation["features"][nodes:].any()
        assert not observation["edges"][edges:].any()
        given = {(identifiers[s], identifiers[r]) for s, r in observation["edges"][:edges]}
        expected = {(s, i) for i in identifiers for s in graph.nodes[i].sources if s in set(identifiers)}
        assert given == expected
        assert len(expected) == edges
        assert env.observation_space.contains(observation)
        observation, *_ = env.step(random_action(env, rng))


def test_a_graph_too_large_for_the_observation_is_refused(bert, make_env):
    env = make_env(max_nodes=len(bert.order) - 1)
    with pytest.raises(InputError, match=r"raise environment\.max_nodes and environment\.max_edges"):
        env.reset(seed=0)


def test_rendering_shows_graph_and_matches(make_env):
    env = make_env()
    env.reset(seed=0)
    text = env.render()
    assert env.graph_hash() in text
    assert text.count("MatMul") >= 6
    assert "matches" in text
    assert text == env.render()


@pytest.mark.parametrize("call", [lambda e: e.step((0, 0)), lambda e: e.render(), lambda e: e.trajectory()])
def test_nothing_comes_before_reset(make_env, call):
    with pytest.raises(InputError, match=r"call reset\(\)"):
        call(make_env())


def test_an_unknown_render_mode_is_refused(bert, shipped):
    with pytest.raises(InputError, match="unknown render mode 'human': choose 'ansi'"):
        SubstitutionEnv(bert, shipped, AnalyticCost(), render_mode="human")


def test_a_graph_without_matches_can_only_be_left(make_env, shipped):
    optimum = from_onnx(zoo.optimum("tiny_transpose"))
    env = make_env(graph=optimum, library=shipped.select([r.id for r in shipped.rules if "transpose" in r.name]))
    observation, _ = env.reset(seed=0)
    assert observation["rule_mask"].tolist() == [0] * (len(env.library.rules)) + [1]
    assert env.step((env.actions.terminate, 0))[2]
