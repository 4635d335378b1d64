"""A replay arrives where the trajectory was recorded, or says at which step it does not."""

from dataclasses import replace
from itertools import islice

import numpy as np
import onnx
import pytest
from support.episodes import SMALL_BERT

from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.errors import ReplayError
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.replay import replay


def changed(episode, number, **fields):
    """The episode with other fields in step `number` (from 1)."""
    steps = list(episode.steps)
    steps[number - 1] = replace(steps[number - 1], **fields)
    return replace(episode, steps=tuple(steps))


def run(graph, episode, shipped):
    return list(replay(graph, episode, Rewriter(shipped.rules)))


def test_a_replay_meets_every_hash(bert, episode, shipped):
    graphs = run(bert, episode, shipped)
    assert graphs[0] is bert
    assert [structural_hash(g) for g in graphs[1:]] == [s.hash for s in episode.steps]
    assert len({s.hash for s in episode.steps}) > 8


def test_a_replay_on_the_model_read_from_a_file_is_the_same(episode, shipped, tmp_path):
    """Names do not count: the file's are all others (but for inputs and outputs, which belong to the interface)."""
    model = zoo.build("bert", **SMALL_BERT, positions=16)
    interface = {v.name for v in (*model.graph.input, *model.graph.output)}
    for number, node in enumerate(model.graph.node):
        node.name = f"n{number}"
        for names in (node.input, node.output):
            names[:] = [name if name in interface or not name else f"renamed/{name}" for name in names]
    for tensor in model.graph.initializer:
        tensor.name = f"renamed/{tensor.name}"
    del model.graph.value_info[:]
    onnx.save(model, tmp_path / "m.onnx")
    graphs = run(from_onnx(tmp_path / "m.onnx"), episode, shipped)
    assert structural_hash(graphs[-1]) == episode.steps[-1].hash


def test_the_last_graph_computes_what_the_first_does(bert, episode, shipped):
    report = compare(to_onnx(bert), to_onnx(run(bert, episode, shipped)[-1]))
    assert report.equivalent
    assert report.non_vacuous_draws > 0


def test_another_start_is_refused(episode, shipped):
    other = from_onnx(zoo.build("bert", **{**SMALL_BERT, "seed": 1}, positions=16))
    with pytest.raises(ReplayError, match=f"starts from graph {episode.start_hash}, but this model is"):
        run(other, episode, shipped)


def test_an_unknown_rule_is_refused_by_its_step(bert, episode, shipped):
    with pytest.raises(ReplayError, match="step 7 applies rule no-such-rule, which is not in the library"):
        run(bert, changed(episode, 7, rule="no-such-rule"), shipped)


@pytest.mark.parametrize("location", [10_000, -1])
def test_a_location_that_is_none_is_refused_by_its_step(bert, episode, shipped, location):
    """-1 would be the last match if Python had its way."""
    with pytest.raises(ReplayError, match=rf"step 3 applies .* at location {location}, but the rule matches \d+ times"):
        run(bert, changed(episode, 3, location=location), shipped)


def test_a_wrong_hash_is_refused_by_its_step(bert, episode, shipped):
    with pytest.raises(ReplayError, match=r"step 5 \(.*\) led to graph [0-9a-f]{16} instead of 0123456789abcdef"):
        run(bert, changed(episode, 5, hash="0123456789abcdef"), shipped)


def test_a_wrong_step_yields_what_is_right_before_it(bert, episode, shipped):
    """So that a user may keep the part that holds."""
    graphs = replay(bert, changed(episode, 5, hash="0" * 16), Rewriter(shipped.rules))
    seen = [structural_hash(graph) for graph in islice(graphs, 5)]
    with pytest.raises(ReplayError, match="step 5"):
        next(graphs)
    assert seen == [episode.start_hash, *(s.hash for s in episode.steps[:4])]


def test_a_library_with_the_same_rules_in_another_order_still_replays(bert, episode, shipped):
    """Rules are found by id and locations counted within a rule, so that rules may be added and reordered."""
    order = np.random.default_rng(0).permutation(len(shipped.rules))
    assert run(bert, episode, shipped.select([shipped.rules[i].id for i in order]))[-1].order
