import time

import numpy as np
import pytest
from onnx import TensorProto, helper

from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.session import SETTINGS
from rlflow.runtime.timing import fragments
from rlflow.runtime.timing.fragments import MINIMUM_REPETITIONS, run_overhead_ns, time_fragment

pytestmark = pytest.mark.slow


@pytest.fixture
def make_matmul(make_model):
    def build(rows, width):
        return make_model(
            [helper.make_node("MatMul", ["x", "w"], ["y"])],
            [("x", TensorProto.FLOAT, [rows, width])],
            [("y", TensorProto.FLOAT, [rows, width])],
            {"w": np.random.default_rng(0).standard_normal((width, width), np.float32)},
        )

    return build


@pytest.mark.timing
@pytest.mark.parametrize("setting", SETTINGS)
def test_more_work_takes_longer(make_matmul, setting):
    """The large matmul has 512 times the work of the small one; 20 leaves room for any machine."""
    small = time_fragment(make_matmul(64, 64), setting=setting, repetitions=7).ms
    large = time_fragment(make_matmul(512, 512), setting=setting, repetitions=7).ms
    assert large > 20 * small


@pytest.mark.timing
def test_weights_are_cold_and_activations_warm(make_matmul, monkeypatch):
    """One row times a 4 MB matrix does nothing but read weights, so it must be slower after an eviction."""
    fragment = make_matmul(1, 1024)
    cold = time_fragment(fragment, setting="as_written", repetitions=9).ms
    monkeypatch.setattr(fragments, "_evict", lambda: None)
    monkeypatch.setattr(fragments, "_SESSIONS", 1)  # each session evicts the weights of the others
    warm = time_fragment(fragment, setting="as_written", repetitions=9).ms
    assert cold > 1.2 * warm > 0


def test_the_overhead_of_a_run_is_subtracted_and_no_price_is_negative(make_matmul, monkeypatch):
    """An overhead of -1 s or +1 s, far from any run of this fragment, must show in the price."""
    monkeypatch.setattr(fragments, "run_overhead_ns", lambda threads: -1e9)
    assert time_fragment(make_matmul(4, 4), setting="as_written", repetitions=3).ms > 1000
    monkeypatch.setattr(fragments, "run_overhead_ns", lambda threads: 1e9)
    assert time_fragment(make_matmul(4, 4), setting="as_written", repetitions=3).ms == 0


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
    assert time_fragment(model, setting=setting, repetitions=3).ms >= 0


def test_outputs_without_a_buffer_run(make_model):
    model = make_model([helper.make_node("SplitToSequence", ["x"], ["y"])], [("x", TensorProto.FLOAT, [2, 3])], [])
    model.graph.output.append(helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None))
    assert time_fragment(model, setting="as_written", repetitions=3).ms > 0


@pytest.mark.parametrize(("cap", "expected"), [(0.0, MINIMUM_REPETITIONS), (None, 9), (3600.0, 9)])
def test_the_time_cap_leaves_the_minimum(make_matmul, monkeypatch, cap, expected):
    run_overhead_ns(1)
    monkeypatch.setattr(fragments, "_preemptions", lambda: 0)
    evictions = []
    monkeypatch.setattr(fragments, "_evict", lambda: evictions.append(1))
    time_fragment(make_matmul(4, 4), setting="as_written", repetitions=9, time_cap_s=cap)
    assert len(evictions) == expected


@pytest.mark.parametrize(("preempted", "attempts"), [(lambda run: run < 4, 13), (lambda run: True, 27)])
def test_preempted_runs_are_repeated_but_not_for_ever(make_matmul, monkeypatch, preempted, attempts):
    """9 clean runs are asked for: 4 spoilt ones come on top, but a machine that spoils all gets 27 attempts."""
    run_overhead_ns(1)
    calls = []

    def preemptions():
        """Called before and after each run and each run of the probe; the count rises while a run is spoilt."""
        run, place = divmod(len(calls), 4)
        calls.append(run)
        return run + 1 if place == 1 and preempted(run) else run

    monkeypatch.setattr(fragments, "_preemptions", preemptions)
    assert time_fragment(make_matmul(256, 256), setting="as_written", repetitions=9).ms > 0
    assert len(calls) == 4 * attempts


def test_the_overhead_is_measured_once_a_process():
    first = run_overhead_ns(1)
    assert first > 0
    assert run_overhead_ns(1) == first


def test_no_repetitions_are_refused(make_matmul):
    with pytest.raises(InputError, match="repetitions is 0"):
        time_fragment(make_matmul(4, 4), setting="as_written", repetitions=0)


@pytest.mark.parametrize(("threads", "is_charged"), [(1, False), (2, True)])
def test_a_thread_that_does_not_run_is_not_charged(make_matmul, monkeypatch, threads, is_charged):
    """Each run sleeps 30 ms, hundreds of times what it takes. Of several threads only the wall clock tells."""
    run_overhead_ns(threads)
    original = fragments._BoundRun.__call__

    def interrupted(self):
        time.sleep(0.03)
        original(self)

    monkeypatch.setattr(fragments._BoundRun, "__call__", interrupted)
    price = time_fragment(make_matmul(16, 16), setting="as_written", repetitions=3, threads=threads).ms
    assert (price > 29) == is_charged


@pytest.mark.timing
def test_the_probe_tells_how_fast_the_machine_is(make_matmul, monkeypatch):
    """Every run, the probe's too, counts eight times: at the pace of before it costs about what it did before."""
    model = make_matmul(128, 512)
    before = time_fragment(model, setting="as_written", repetitions=9)
    original = fragments._timed

    def slowed(*arguments):
        run = original(*arguments)
        return run._replace(ns=8 * run.ns)

    monkeypatch.setattr(fragments, "_timed", slowed)
    slow = time_fragment(model, setting="as_written", repetitions=9)
    assert slow.ms > 4 * before.ms
    assert slow.at_pace(before.probe_ms) == pytest.approx(before.ms, rel=0.3)


def test_one_undisturbed_run_of_each_session_is_enough(make_matmul, monkeypatch):
    """All runs but the first ones are made to compute 20 ms longer: the median would be charged with it."""
    run_overhead_ns(1)
    original, calls = fragments._BoundRun.__call__, []

    def disturbed(self):
        calls.append(1)
        until = time.thread_time() + (0 if len(calls) <= 30 else 0.02)  # 6 to warm up, 6 turns of 4
        while time.thread_time() < until:
            pass
        original(self)

    monkeypatch.setattr(fragments._BoundRun, "__call__", disturbed)
    assert time_fragment(make_matmul(16, 16), setting="as_written", repetitions=12).ms < 10


def test_a_result_of_another_size_than_declared_is_an_error(make_model):
    """ONNX Runtime only warns of it, but for results that it must write to a place of the declared size."""
    model = make_model(
        [helper.make_node("NonZero", ["x"], ["y"])],
        [("x", TensorProto.FLOAT, [4])],
        [("y", TensorProto.INT64, [1, 3])],
    )
    with pytest.raises(RLFlowError, match=r"in fixed buffers: .*Got: 4 Expected: 3"):
        time_fragment(model, setting="as_written", repetitions=1)
