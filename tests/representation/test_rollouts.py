"""Rollouts survive the disk bit by bit, and broken ones are refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.contents import contents

from rlflow.errors import InputError
from rlflow.representation.action_space import ActionSpace
from rlflow.representation.graph_arrays import GraphArrays
from rlflow.representation.rollouts import Episode, Rollouts
from rlflow.representation.vocabulary import PADDING, Vocabulary

VOCABULARY = Vocabulary((PADDING, "Add", "Mul", "Relu", "Exp", "Log"), ("rank", "operands"))


def graph(nodes: int, rng: np.random.Generator) -> GraphArrays:
    edges = rng.integers(0, nodes, (nodes - 1, 2))
    return GraphArrays(rng.integers(1, 6, nodes), rng.normal(size=(nodes, 2)).astype(np.float32), edges)


def episode(steps: int, rng: np.random.Generator) -> Episode:
    return Episode(
        graph_index=rng.integers(0, 3, steps + 1),
        action=rng.integers(0, 2, (steps, 2)),
        reward=rng.normal(size=steps).astype(np.float32),
        terminated=np.arange(steps) == steps - 1,
        counts=rng.integers(0, 5, (steps + 1, 2)),
        cost=rng.uniform(50, 100, steps + 1).astype(np.float32),
        memory_saved=rng.normal(size=steps).astype(np.float32),
        latency_saved=np.full(steps, np.nan, np.float32),
    )


@pytest.fixture
def rollouts() -> Rollouts:
    rng = np.random.default_rng(0)
    graphs = tuple(graph(nodes, rng) for nodes in (1, 4, 7))
    episodes = tuple(episode(steps, rng) for steps in (1, 5, 3))
    return Rollouts(graphs, episodes, ActionSpace(2, 4), ("merge", "fold"), VOCABULARY, "abc")


def test_save_and_load_give_every_array_back(rollouts: Rollouts, tmp_path: Path) -> None:
    rollouts.save(tmp_path)
    loaded = Rollouts.load(tmp_path)
    assert (loaded.rule_ids, loaded.vocabulary, loaded.library_hash) == (("merge", "fold"), VOCABULARY, "abc")
    assert loaded.action_space == rollouts.action_space
    assert loaded.num_steps == 9
    for old, new in zip((*rollouts.graphs, *rollouts.episodes), (*loaded.graphs, *loaded.episodes), strict=True):
        for name, array in vars(old).items():
            np.testing.assert_array_equal(array, getattr(new, name), strict=True)


def test_equal_rollouts_are_equal_files(rollouts: Rollouts, tmp_path: Path) -> None:
    rollouts.save(tmp_path / "a")
    rollouts.save(tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_missing_or_truncated_folder_is_refused(rollouts: Rollouts, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run collect_rollouts"):
        Rollouts.load(tmp_path / "nowhere")
    rollouts.save(tmp_path)
    (tmp_path / "rollouts.npz").write_bytes(b"no archive")
    with pytest.raises(InputError, match="run collect_rollouts"):
        Rollouts.load(tmp_path)


def test_rollouts_that_do_not_name_their_vocabulary_are_refused(rollouts: Rollouts, tmp_path: Path) -> None:
    """As format 1, which told its size alone."""
    rollouts.save(tmp_path)
    description = json.loads((tmp_path / "rollouts.json").read_text())
    size = len(description.pop("vocabulary")["operators"])
    description |= {"format_version": 1, "vocabulary_size": size}
    (tmp_path / "rollouts.json").write_text(json.dumps(description))
    with pytest.raises(InputError, match="another format version; run collect_rollouts again"):
        Rollouts.load(tmp_path)


def test_inconsistent_episodes_are_refused(rollouts: Rollouts) -> None:
    first = rollouts.episodes[1]
    with pytest.raises(InputError, match="cost of the wrong length"):
        replace(first, cost=first.cost[:-1])
    with pytest.raises(InputError, match="goes on after terminate"):
        replace(first, terminated=~first.terminated)
    with pytest.raises(InputError, match="graph that is not there"):
        replace(rollouts, episodes=(replace(first, graph_index=first.graph_index + 9),))
    with pytest.raises(InputError, match="match counts outside"):
        replace(rollouts, episodes=(replace(first, counts=first.counts + 9),))
    with pytest.raises(InputError, match="outside the vocabulary"):
        replace(rollouts, vocabulary=replace(VOCABULARY, operators=VOCABULARY.operators[:2]))
    with pytest.raises(InputError, match="does not have the 1 features"):
        replace(rollouts, vocabulary=replace(VOCABULARY, features=("rank",)))
    with pytest.raises(InputError, match="rule ids"):
        replace(rollouts, rule_ids=("merge", "merge"))
