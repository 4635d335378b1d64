"""One fragment, ready to be run: cold weights, warm code, and what a run says of itself."""

import time

import numpy as np
import pytest
from onnx import TensorProto, helper

from rlflow.errors import RLFlowError
from rlflow.runtime.session import SETTINGS
from rlflow.runtime.timing import fragments
from rlflow.runtime.timing.clock import clock_ns
from rlflow.runtime.timing.fragments import EVICTION_BYTES, evict, prepare, timed


@pytest.mark.parametrize("setting", SETTINGS)
def test_indices_masks_scalars_and_integers_run(make_model, setting):
    model = make_model(
        [
            helper.make_node("Gather", ["table", "ids"], ["rows"]),
            helper.make_node("Where", ["keep_mask", "rows", "zero"], ["kept"]),
            helper.make_node("Mul", ["kept", "scale"], ["scaled"]),
            helper.make_node("Div", ["ids", "n"], ["quotient"]),
        ],
        [
            ("ids", TensorProto.INT64, [5]),
            ("keep_mask", TensorProto.BOOL, [5, 1]),
            ("scale", TensorProto.FLOAT, []),
            ("n", TensorProto.INT64, [5]),
        ],
        [("scaled", TensorProto.FLOAT, [5, 3]), ("quotient", TensorProto.INT64, [5])],
        {"table": np.ones((6, 3), np.float32), "zero": np.zeros((), np.float32)},
    )
    assert timed(prepare(model, setting=setting, sessions=2), turn=0).ns > 0


def test_outputs_without_a_buffer_run(make_model):
    model = make_model([helper.make_node("SplitToSequence", ["x"], ["y"])], [("x", TensorProto.FLOAT, [2, 3])], [])
    model.graph.output.append(helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None))
    assert timed(prepare(model, setting="as_written", sessions=2), turn=0).ns > 0


def test_a_result_of_another_size_than_declared_is_an_error(make_model):
    """ONNX Runtime only warns of it, but for results that it must write to a place of the declared size."""
    model = make_model(
        [helper.make_node("NonZero", ["x"], ["y"])],
        [("x", TensorProto.FLOAT, [4])],
        [("y", TensorProto.INT64, [1, 3])],
    )
    with pytest.raises(RLFlowError, match=r"in fixed buffers: .*Got: 4 Expected: 3"):
        prepare(model, setting="as_written", sessions=2)


def test_symbolic_dimensions_of_others_do_not_matter(make_model):
    relu = helper.make_node("Relu", ["x"], ["y"])
    declared = [TensorProto.FLOAT, ["batch", 3]]
    model = make_model([relu], [("x", *declared)], [("y", *declared)])
    fragment = prepare(model, setting="deployed", sessions=2, dimensions={"batch": 7, "length": 9})
    assert timed(fragment, 0).ns > 0
    assert prepare(model, setting="deployed", sessions=2, dimensions={"batch": 7}).views == fragment.views


@pytest.fixture
def calls(make_matmul, monkeypatch):
    """The runs of a fragment of three sessions, in order."""
    fragment, made = prepare(make_matmul(4, 4), setting="as_written", sessions=3), []
    places = {id(session): place for place, session in enumerate(fragment.sessions)}
    run = fragments.BoundRun.__call__
    monkeypatch.setattr(fragments.BoundRun, "__call__", lambda self: (made.append(places[id(self)]), run(self))[1])
    return fragment, made


@pytest.mark.parametrize(("turn", "own", "twins"), [(0, 0, {1, 2}), (1, 1, {0, 2}), (2, 2, {0, 1}), (3, 0, {1, 2})])
def test_twins_with_other_weights_run_right_before(calls, turn, own, twins):
    fragment, made = calls
    assert timed(fragment, turn).session == own
    assert made.pop() == own
    assert set(made) == twins
    assert len(made) == 5


def test_long_runs_are_preceded_by_two(calls, monkeypatch):
    fragment, made = calls
    monkeypatch.setattr(fragments, "_TWINS_NS", 0)
    timed(fragment, 0)
    assert made == [1, 2, 0]


def test_sessions_share_inputs_and_outputs(make_matmul):
    fragment = prepare(make_matmul(4, 4), setting="as_written", sessions=3)
    places = [{name: value.data_ptr() for name, value in each.buffers.items()} for each in fragment.sessions]
    assert len(set(places[0].values())) == 2
    assert places[0] == places[1] == places[2]


@pytest.mark.parametrize("spoilt", [True, False])
def test_a_run_says_whether_it_lost_the_processor(make_matmul, monkeypatch, spoilt):
    fragment, counts = prepare(make_matmul(4, 4), setting="as_written", sessions=2), iter((5, 5 + spoilt))
    monkeypatch.setattr(fragments, "_preemptions", lambda: next(counts))
    assert timed(fragment, 0).undisturbed == (not spoilt)


@pytest.mark.parametrize(("threads", "is_charged"), [(1, False), (2, True)])
def test_a_thread_that_does_not_run_is_not_charged(make_matmul, monkeypatch, threads, is_charged):
    """Each run sleeps 30 ms, hundreds of times what it takes. Of several threads only the wall clock tells."""
    fragment = prepare(make_matmul(16, 16), setting="as_written", sessions=2, threads=threads)
    original = fragments.BoundRun.__call__

    def interrupted(self):
        time.sleep(0.03)
        original(self)

    monkeypatch.setattr(fragments.BoundRun, "__call__", interrupted)
    assert (timed(fragment, 0).ns > 29e6) == is_charged


@pytest.mark.timing
def test_weights_are_cold_after_an_eviction(make_matmul):
    """One row times a matrix of 1 MB does nothing but read weights."""
    fragment = prepare(make_matmul(1, 512), setting="as_written", sessions=2)
    cold, warm = [], []
    for _ in range(9):
        evict(EVICTION_BYTES)
        cold.append(timed(fragment, 0).ns)
        start = clock_ns(1)
        fragment.sessions[0]()
        warm.append(clock_ns(1) - start)
    assert min(cold) > 1.2 * min(warm)


@pytest.mark.timing
def test_what_is_computed_on_the_way_is_warm_after_an_eviction(make_model):
    """4 MB that no weights are part of: with arenas of their own, sessions took twice as long after an eviction."""
    nodes = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Abs", ["a"], ["b"])]
    nodes.append(helper.make_node("ReduceMax", ["b"], ["y"], axes=[0, 1], keepdims=1))
    model = make_model(nodes, [("x", TensorProto.FLOAT, [1000, 1000])], [("y", TensorProto.FLOAT, [1, 1])])
    fragment = prepare(model, setting="as_written", sessions=2)
    usual = min(timed(fragment, turn).ns for turn in range(9))
    evicted = []
    for turn in range(9):
        evict(EVICTION_BYTES)
        evicted.append(timed(fragment, turn).ns)
    assert min(evicted) < 1.2 * usual
