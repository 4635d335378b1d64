import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.timing import latency
from rlflow.runtime.timing.latency import compare_latency
from rlflow.runtime.timing.statistics import Ratio, ratio


def test_ratio_is_the_median_of_the_rounds():
    reference, other = np.array([2.0, 4.0, 30.0]), np.array([1.0, 2.0, 10.0])
    measured = ratio(reference, other)
    assert measured.value == 2.0
    assert measured.ci95 == [measured.ci95_low, measured.ci95_high] == [2.0, 3.0]
    assert ratio(reference, reference) == Ratio(1.0, 1.0, 1.0)


def test_a_drift_that_hits_both_cancels():
    drift = np.geomspace(1, 50, 20)
    assert ratio(3 * drift, 2 * drift).value == pytest.approx(1.5)
    with pytest.raises(ValueError, match="paired"):
        ratio(drift, drift[:-1])


def test_rounds_are_counted_and_sessions_are_fresh_and_rotated(make_dense, monkeypatch):
    models = {name: make_dense() for name in "abc"}
    opened, rounds = [], []
    open_session = latency.open_session

    def recording_open(model, setting, threads):
        opened.append(next(name for name, known in models.items() if known is model))
        return open_session(model, setting, threads)

    monkeypatch.setattr(latency, "open_session", recording_open)
    times = compare_latency(models, setting="deployed", rounds=4, runs_per_round=2, on_round=rounds.append)
    assert "".join(opened) == "abc" + "bca" + "cab" + "abc"
    assert rounds == [1, 2, 3, 4]
    assert list(times) == ["a", "b", "c"]
    assert all(values.shape == (4,) and (values > 0).all() for values in times.values())


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
