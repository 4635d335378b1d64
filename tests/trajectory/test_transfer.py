"""Rewrites found where more is known of a model, taken where less is."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from onnx import parser
from support.episodes import record

from rlflow.errors import ReplayError
from rlflow.ir import validate
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.runtime.session import open_session, run
from rlflow.trajectory.record import Step, Trajectory
from rlflow.trajectory.replay import replay
from rlflow.trajectory.transfer import steps_taken, transferred

TWO_RELUS = """
    <ir_version: 8, opset_import: ["" : 17]>
    halves (float[n, 4] x, float[m, 4] z) => (float[n, 4] y)
    <float[4] one = {1, 1, 1, 1}> {
        a = Add(x, one)
        b = Relu(a)
        c = Relu(b)
        d = Add(c, z)
        e = Relu(d)
        y = Relu(e)
    }
"""
"""The sum of x and z has n rows only if m is 1 or n: without knowing, how many it has is open."""


@pytest.fixture(scope="module")
def graphs() -> tuple[Graph, Graph]:
    """With both sizes known, and as it is."""
    model = parser.parse_model(TWO_RELUS)
    return from_onnx(model, {"n": 3, "m": 3}), from_onnx(model)


@pytest.mark.parametrize("seed", range(5))
def test_onto_the_same_graph_it_is_the_same(bert: Graph, shipped: Library, seed: int) -> None:
    rewriter = Rewriter(shipped.rules)
    trajectory = record(bert, rewriter, shipped.hash, 10, seed)
    moved = transferred(bert, trajectory, bert, rewriter)
    assert (moved.trajectory, moved.refused) == (trajectory, ())


@pytest.mark.parametrize("seed", range(12))
def test_what_is_taken_is_right_whatever_was_refused(graphs: tuple[Graph, Graph], shipped: Library, seed: int) -> None:
    """The rewriter admits each step anew, so that outputs are the same at sizes of which the search did not know."""
    known, as_it_is = graphs
    rewriter = Rewriter(shipped.rules)
    trajectory = record(known, rewriter, shipped.hash, 8, seed)
    moved = transferred(known, trajectory, as_it_is, rewriter)
    validate(moved.last)
    assert len(moved.trajectory.steps) + len(moved.refused) == len(trajectory.steps)
    *_, again = replay(as_it_is, moved.trajectory, Rewriter(shipped.rules))
    for rows in ((1, 1), (7, 7), (7, 1)):
        rng = np.random.default_rng(0)
        feeds = {n: rng.standard_normal((r, 4)).astype(np.float32) for n, r in zip("xz", rows, strict=True)}
        before, after = (run(open_session(to_onnx(g), "as_written"), feeds)["y"] for g in (as_it_is, again))
        np.testing.assert_allclose(after, before, rtol=1e-5)


def test_steps_are_found_again_by_what_they_replace(graphs: tuple[Graph, Graph], shipped: Library) -> None:
    """The sum of x and z can be turned round only where its type is known: that step is refused, and a step after it,
    which has the second place there and the only one here, is not.
    """
    known, as_it_is = graphs
    rewriter = Rewriter([shipped.get("Add(a, b) => Add(b, a)")])
    assert [rewriter.matches(graph).counts[0] for graph in graphs] == [2, 1]
    trajectory = _walked(known, rewriter, [1, 0])
    moved = transferred(known, trajectory, as_it_is, rewriter)
    assert moved.refused == (rewriter.rules[0].id,)
    assert [step.location for step in moved.trajectory.steps] == [0]
    assert structural_hash(moved.last) != structural_hash(as_it_is)


def test_a_step_after_a_refused_one_is_found_although_numbers_went_on(
    graphs: tuple[Graph, Graph], shipped: Library
) -> None:
    """The third step turns round what the second one made, whose number depends on what the first one made."""
    known, as_it_is = graphs
    rewriter = Rewriter([shipped.get("Add(a, b) => Add(b, a)")])
    first = next(
        place
        for place, match in enumerate(rewriter.matches(known)[0])
        if known.nodes[match.roots[0].node].names == ("d",)
    )
    other = 1 - first
    trajectory = _walked(known, rewriter, [first, other, other])
    moved = transferred(known, trajectory, as_it_is, rewriter)
    assert len(moved.refused) == 1
    assert len(moved.trajectory.steps) == 2
    assert structural_hash(moved.last) == structural_hash(as_it_is), "turned round twice"


def test_a_trajectory_of_another_graph_is_refused(
    graphs: tuple[Graph, Graph], bert: Graph, episode: Trajectory
) -> None:
    with pytest.raises(ReplayError, match="starts from graph"):
        transferred(graphs[0], episode, graphs[1], Rewriter(()))


def _walked(graph: Graph, rewriter: Rewriter, locations: Sequence[int]) -> Trajectory:
    """The one rule applied at these places, one after another."""
    start, steps = structural_hash(graph), []
    for location in locations:
        graph = rewriter.apply(graph, rewriter.matches(graph)[0][location])
        steps.append(Step(rewriter.rules[0].id, location, structural_hash(graph), 0.0, 0.0))
    return Trajectory(start, 0.0, "none", "one rule", tuple(steps))


@pytest.mark.parametrize("seed", range(5))
def test_a_trajectory_of_private_matching_becomes_one_of_sharing_matching(
    bert: Graph, shipped: Library, seed: int
) -> None:
    """Every private match is a sharing match of another number; its end costs no more, as equal nodes merge."""
    private, sharing = Rewriter(shipped.rules), SharingRewriter(shipped.rules)
    trajectory = record(bert, private, shipped.hash, 10, seed)
    walk = list(steps_taken(bert, trajectory, bert, private, sharing))
    taken = [step for step, _ in walk if step is not None]
    assert taken, "a walk of refusals would show nothing"
    moved = replace(trajectory, steps=tuple(taken), matching=sharing.matching)
    *_, last = replay(bert, moved, sharing)
    assert structural_hash(last) == structural_hash(walk[-1].graph)
    if len(taken) == len(walk):
        assert [step.rule for step in taken] == [step.rule for step in trajectory.steps]


def test_a_trajectory_is_not_replayed_with_another_matching(bert: Graph, shipped: Library) -> None:
    trajectory = record(bert, SharingRewriter(shipped.rules), shipped.hash, 3, 0)
    with pytest.raises(ReplayError, match="recorded with sharing matching"):
        list(replay(bert, trajectory, Rewriter(shipped.rules)))
