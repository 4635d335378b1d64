"""Where float32 is inconclusive, float64 tells rounding from a fault."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from rlflow.equivalence.compare import compare
from rlflow.equivalence.float64_check import INCONCLUSIVE_FACTOR, WORSE_FACTOR
from rlflow.onnx_io import load_model

FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE


def there_and_back(make_model, far, factor=1.0):
    """y = ((x + far) - far) * factor: over the reals x * factor, in float32 with the rounding of numbers near `far`."""
    nodes = [("Add", ["x", "far"], ["up"]), ("Sub", ["up", "far"], ["down"]), ("Mul", ["down", "factor"], ["y"])]
    stored = {"far": np.array([far], np.float32), "factor": np.array([factor], np.float32)}
    return make_model(
        [helper.make_node(*node) for node in nodes], [("x", FLOAT, [8, 8])], [("y", FLOAT, [8, 8])], stored
    )


def products(make_model, *weights):
    names = [f"w{i}" for i in range(len(weights))]
    values = ["x", *(f"v{i}" for i in range(1, len(weights))), "y"]
    nodes = [helper.make_node("MatMul", [values[i], name], [values[i + 1]]) for i, name in enumerate(names)]
    width = weights[0].shape[0]
    return make_model(
        nodes,
        [("x", FLOAT, [16, width])],
        [("y", FLOAT, [16, width])],
        dict(zip(names, weights, strict=True)),
    )


@pytest.fixture(scope="module")
def ill_conditioned():
    """A (32, 32) of condition 1000, and its inverse, both rounded to float32: their product is about 1."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((32, 32)))[0] for _ in range(2))
    singular = np.geomspace(1, 1000, 32)
    return ((left * singular) @ right).astype(np.float32), ((right.T / singular) @ left.T).astype(np.float32)


def test_equal_over_the_reals_is_accepted_with_the_reason(make_model):
    """In float32 alone this is a failure: the error is far above the tolerance."""
    report = compare(there_and_back(make_model, 1000), there_and_back(make_model, 3000))
    assert report.max_relative_error > 5 * report.tolerance
    assert report.equivalent
    assert not report.is_inconclusive
    assert report.float64.difference <= report.float64.allowed < 1e-12
    assert "in float64 they differ by" in report.reason
    assert report.reason in report.summary
    assert 0 < report.float64.original_error < 1e-3


def test_weights_in_files_are_read_in_for_it(make_model, tmp_path):
    """Of models that name them by absolute path, and are left as they are."""
    models = []
    for far in (1000, 3000):
        path = tmp_path / f"{far}.onnx"
        onnx.save_model(
            there_and_back(make_model, far), path, save_as_external_data=True, location=f"{far}.data", size_threshold=0
        )
        models.append(load_model(path))
    report = compare(*models)
    assert report.equivalent
    assert report.float64.difference <= report.float64.allowed < 1e-12
    assert all(tensor.data_location == TensorProto.EXTERNAL for model in models for tensor in model.graph.initializer)


def test_the_side_that_is_further_from_the_truth_is_named(make_model):
    """Less rounding is welcome; more than ten times as much is not, equal over the reals or not."""
    rough, fine = there_and_back(make_model, 1500), there_and_back(make_model, 1)
    better = compare(rough, fine)
    assert better.equivalent
    assert better.float64.further == "original"
    assert better.float64.original_error > WORSE_FACTOR * better.float64.candidate_error
    worse = compare(fine, rough)
    assert not worse.equivalent
    assert not worse.is_inconclusive
    assert worse.float64.further == "candidate"
    assert worse.float64.difference <= worse.float64.allowed
    assert "the candidate is further from it" in worse.reason


def test_a_small_fault_does_not_hide_behind_bad_conditioning(make_model):
    """One part in ten thousand is less than ten times this model's own rounding, and still no rounding."""
    report = compare(there_and_back(make_model, 1000), there_and_back(make_model, 1000, factor=1 + 1e-4))
    assert report.tolerance < report.max_relative_error < INCONCLUSIVE_FACTOR * report.tolerance
    assert report.float64.candidate_error < WORSE_FACTOR * report.float64.original_error
    assert not report.equivalent
    assert report.float64.difference == pytest.approx(1e-4, rel=0.01)


def test_a_folded_weight_may_be_rounded_once_more(make_model, ill_conditioned):
    """(x @ A) @ B = x @ (A @ B), where A @ B is stored in float32 and so differs in float64, too."""
    a, b = ill_conditioned
    folded = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    report = compare(products(make_model, a, b), products(make_model, folded))
    assert report.max_relative_error > report.tolerance
    assert report.float64.difference > 1e-9, "otherwise nothing had been rounded"
    assert report.equivalent


def test_a_changed_weight_is_no_rounding(make_model, ill_conditioned):
    """A weight off by 1e-4 of itself: too little for float32 to be sure, too much for a rounding."""
    a, b = ill_conditioned
    spoiled = b.copy()
    spoiled[:, 0] *= 1 + 1e-4
    report = compare(products(make_model, a, b), products(make_model, a, spoiled))
    assert report.tolerance < report.max_relative_error < INCONCLUSIVE_FACTOR * report.tolerance
    assert report.float64 is not None
    assert not report.equivalent
    assert compare(products(make_model, a, b), products(make_model, a, b)).equivalent


def test_without_a_float64_reference_it_stays_inconclusive(make_model):
    """An operator of ONNX Runtime's own that has no float64 kernel and that no interpreter knows."""

    def model(factor):
        made = make_model(
            [
                helper.make_node("SampleOp", ["x"], ["q"], domain="com.microsoft"),
                helper.make_node("Mul", ["q", "f"], ["y"]),
            ],
            [("x", FLOAT, [4, 4])],
            [("y", FLOAT, [4, 4])],
            {"f": np.float32(factor)},
        )
        made.opset_import.add(domain="com.microsoft", version=1)
        return made

    report = compare(model(1), model(1 + 1e-5))
    assert report.is_inconclusive
    assert report.float64 is None
    assert "rounding in a badly conditioned model could explain so little" in report.summary
