import math
from contextlib import closing
from itertools import islice

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.timing import latency
from rlflow.runtime.timing.latency import Take, compare_latency, countdown, latency_rounds, undisturbed, within
from rlflow.runtime.timing.statistics import Estimate, ratio


def test_ratio_is_the_median_of_the_rounds():
    reference, other = np.array([2.0, 4.0, 30.0]), np.array([1.0, 2.0, 10.0])
    measured = ratio(reference, other)
    assert measured.value == 2.0
    assert measured.ci95 == (measured.ci95_low, measured.ci95_high) == (2.0, 3.0)
    assert ratio(reference, reference) == Estimate(1.0, 1.0, 1.0)


def test_a_drift_that_hits_both_cancels():
    drift = np.geomspace(1, 50, 20)
    assert ratio(3 * drift, 2 * drift).value == pytest.approx(1.5)
    with pytest.raises(ValueError, match="paired"):
        ratio(drift, drift[:-1])


def test_rounds_are_counted_and_sessions_are_fresh_and_in_a_drawn_order(make_dense, monkeypatch):
    """Every model once a round; over ten rounds each order comes, the same ones for the same seed.

    Models are told apart by the files that they are opened from, which are numbered.
    """
    models = {name: make_dense() for name in "ab"}
    opened, rounds = [], []
    open_model = latency.open_model

    def recording_open(model, setting, threads):
        opened.append("ab"[int(model.stem)])
        return open_model(model, setting, threads)

    monkeypatch.setattr(latency, "open_model", recording_open)
    with closing(latency_rounds(models, setting="deployed", runs_per_round=2)) as endless:
        once = [each.times_ms for each in islice(endless, 10)]
    orders = ["".join(order) for order in batched(opened, 2)]
    assert set(orders) == {"ab", "ba"}
    assert all(list(times_ms) == ["a", "b"] for times_ms in once)

    opened.clear()
    times = compare_latency(models, setting="deployed", rounds=3, runs_per_round=2, on_round=rounds.append)
    assert ["".join(order) for order in batched(opened, 2)][:3] == orders[:3]
    assert rounds == [1, 2, 3]
    assert list(times) == ["a", "b"]
    assert all(values.shape == (3,) and (values > 0).all() for values in times.values())


def test_a_model_that_is_timed_under_two_names_is_written_once_and_a_file_stays(make_dense, monkeypatch, tmp_path):
    """Weights lie beside it, from where they are mapped; nothing is left behind."""
    model, given, opened = make_dense(64, 64), tmp_path / "given.onnx", {}
    onnx.save(model, given)
    open_model = latency.open_model

    def recording_open(path, setting, threads):
        opened[path] = sorted(each.name for each in path.parent.iterdir())
        return open_model(path, setting, threads)

    monkeypatch.setattr(latency, "open_model", recording_open)
    compare_latency({"a": model, "b": model, "c": given}, setting="deployed", rounds=1, runs_per_round=1)
    (written,) = opened.keys() - {given}
    assert opened == {given: ["given.onnx"], written: ["0.onnx", "0.weights"]}
    assert not written.parent.exists()


def batched(values, size):
    return zip(*[iter(values)] * size, strict=True)


@pytest.mark.parametrize(
    ("time_s", "takes_s", "begun"),
    [
        (10.0, [3.0] * 9, 3),
        (9.0, [3.0] * 9, 3),
        (10.0, [1.0, 4.0, 1.0, 1.0, 1.0], 4),
        (0.0, [5.0], 1),
        (-1.0, [5.0], 1),
        (math.inf, [5.0] * 99, 99),
    ],
)
def test_no_round_is_begun_that_would_not_end_in_time(time_s: float, takes_s: list[float], begun: int) -> None:
    """By the longest so far; the first is taken in any case."""
    gone_s, waiting = 0.0, iter(takes_s)

    def take() -> Take:
        nonlocal gone_s
        gone_s += next(waiting)
        return Take({"a": 1.0}, (1.0,))

    assert len(list(islice(within(lambda: time_s - gone_s, take), 99))) == begun


def test_fewer_rounds_are_compared_where_time_is_over(make_dense) -> None:
    """At least one; with time, as many as were asked for."""
    for left_s, done in ((countdown(0.0), 1), (countdown(60.0), 3)):
        times = compare_latency({"a": make_dense()}, setting="deployed", rounds=3, left_s=left_s)
        assert times["a"].shape == (done,)


def test_rounds_end_when_time_is_called_off() -> None:
    left_s = iter([20.0, 15.0, 0.0])
    assert len(list(within(lambda: next(left_s), lambda: Take({"a": 1.0}, (1.0,))))) == 2


def paced(*slowest: float) -> list[Take]:
    """Takes that are known by the time of their model, beside a pace of 1 ms that rises to this once."""
    return [Take({"a": float(number)}, (1.0, pace_ms, 1.0)) for number, pace_ms in enumerate(slowest)]


@pytest.mark.parametrize(
    ("slowest", "counted"),
    [
        ((1.0, 1.1, 1.0), [(0, 0), (1, 0), (2, 0)]),
        ((1.0, 9.0, 1.0, 1.0), [(0, 0), (2, 1), (3, 0)]),
        ((9.0, 1.0), [(1, 1)]),
        ((9.0, 9.0, 9.0, 1.0), [(2, 2), (3, 0)]),
        ((1.0, 9.0, 9.0, 9.0, 9.0, 1.0), [(0, 0), (3, 2), (5, 1)]),
        ((1.0, 9.0), [(0, 0)]),
        ((9.0, 9.0), [(1, 1)]),
    ],
)
def test_a_round_beside_a_slow_machine_is_taken_again(
    slowest: tuple[float, ...], counted: list[tuple[int, int]]
) -> None:
    """At most twice, and what comes last counts if nothing else does: there is always an answer."""
    assert [(int(each.times_ms["a"]), each.retaken) for each in undisturbed(paced(*slowest))] == counted


def test_a_machine_that_is_slow_all_the_time_is_not_slow() -> None:
    """Slow is what is slower than usual: here all is as slow as the first round."""
    takes = [Take({"a": 1.0}, (9.0, 9.1, 8.9))] * 5
    assert [each.retaken for each in undisturbed(takes)] == [0] * 5


@pytest.mark.timing
def test_a_hundred_times_the_work_is_slower(make_dense, tmp_path):
    large = tmp_path / "large.onnx"
    onnx.save(make_repeated(make_dense, 100), large)
    models = {"large": large, "small": make_repeated(make_dense, 1)}
    times = compare_latency(models, setting="as_written", rounds=5, runs_per_round=5)
    assert ratio(times["large"], times["small"]).ci95_low > 3


def make_repeated(make_dense, count):
    """`count` matmuls of 64x64 in a row, input 64x64."""
    model = make_dense(64, 64)
    weight = model.graph.initializer[0]
    weight.raw_data = (np.eye(64, dtype=np.float32)).tobytes()
    del model.graph.node[:]
    names = ["x", *(f"v{i}" for i in range(count - 1)), "y"]
    model.graph.node.extend(helper.make_node("MatMul", [names[i], "w"], [names[i + 1]]) for i in range(count))
    return model


def test_refusals(make_dense, make_model):
    with pytest.raises(InputError, match="nothing to time: 0 models"):
        compare_latency({}, setting="deployed", rounds=1, runs_per_round=1)
    with pytest.raises(InputError, match="0 rounds"):
        compare_latency({"a": make_dense()}, setting="deployed", rounds=0, runs_per_round=1)
    other = make_model(
        [helper.make_node("Relu", ["z"], ["y"])],
        [("z", TensorProto.FLOAT, [1])],
        [("y", TensorProto.FLOAT, [1])],
    )
    with pytest.raises(RLFlowError, match=r"other takes inputs \['z'\], original takes \['x'\]"):
        compare_latency({"original": make_dense(), "other": other}, setting="deployed", rounds=1, runs_per_round=1)
