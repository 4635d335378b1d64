"""The environment as docs/spaces.md describes it."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from rlflow import zoo
from rlflow.errors import InputError
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import from_onnx
from rlflow.rules.matching.rewriter import Rewriter


def random_action(env, rng):
    counts = env.state.counts
    rule = int(rng.choice(np.flatnonzero(counts)))
    return rule, int(rng.integers(counts[rule]))


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


def start_hash(env, **reset):
    env.reset(**reset)
    return env.state.hash


def test_episodes_start_behind_random_rewrites(make_env):
    env = make_env(start_rewrites=4)
    origin = structural_hash(env.process.start().graph)
    starts = {start_hash(env, seed=seed) for seed in range(12)}
    assert len(starts) > 5
    assert start_hash(env, seed=0, options={"start_rewrites": 0}) == origin
    assert start_hash(env, seed=0, options={"start_rewrites": 3}) != origin
    assert env.trajectory().start_hash == env.state.hash
    observation, _ = env.reset(seed=1, options={"start_rewrites": 3})
    assert observation["cost"] == pytest.approx(100)


SCRIPT = """
import json, sys
import numpy as np
from rlflow.environments.make import process_env
from rlflow import zoo
model = zoo.build("bert", layers=1, hidden=32, heads=2, intermediate=64, sequence=8, vocabulary=50, positions=16)
env = process_env("rule and location", model, max_locations=20, start_rewrites=3)
rng = np.random.default_rng(0)
observation, info = env.reset(seed=5)
seen = [env.state.hash]
for _ in range(15):
    counts = env.state.counts
    rule = int(rng.choice(np.flatnonzero(counts)))
    observation, reward, _, _, info = env.step((rule, int(rng.integers(counts[rule]))))
    seen.append([env.state.hash, info["runtime_ms"], reward, float(observation["features"].sum()), counts.tolist()])
print(json.dumps(seen))
"""


def test_processes_agree_whatever_their_hash_seed():
    """Sets and dictionaries of names are in another order under another PYTHONHASHSEED."""
    answers = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1", "PATH": "", "PYTHONPATH": os.pathsep.join(sys.path)},
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


def test_a_graph_without_matches_can_only_be_left(make_env, shipped):
    optimum = from_onnx(zoo.optimum("tiny_transpose"))
    env = make_env(graph=optimum, library=shipped.select([r.id for r in shipped.rules if "transpose" in r.name]))
    observation, _ = env.reset(seed=0)
    assert observation["rule_mask"].tolist() == [0] * (len(env.library.rules)) + [1]
    assert env.step((env.actions.terminate, 0))[2]
