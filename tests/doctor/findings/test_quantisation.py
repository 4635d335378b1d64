"""A model of 8 bits beside itself in float32."""

import numpy as np
from onnx import helper
from support.examined import subject_of
from support.onnx_models import build_model, floats
from support.small_models import dense_model

from rlflow.doctor.findings.quantisation import quantisation


def quantised():
    """A product by weights of 8 bits."""
    weights = np.random.default_rng(0).integers(-128, 128, (64, 64)).astype(np.int8)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["int"]),
        helper.make_node("DequantizeLinear", ["int", "scale", "zero"], ["rounded"]),
        helper.make_node("DequantizeLinear", ["stored", "scale", "zero"], ["weights"]),
        helper.make_node("MatMul", ["rounded", "weights"], ["y"]),
    ]
    constants = {"stored": weights, "scale": np.float32(0.02), "zero": np.int8(0)}
    return build_model(nodes, [floats("x", 8, 64)], [floats("y", 8, 64)], weights=constants)


def test_float32_is_not_looked_at(tmp_path):
    assert not list(quantisation(subject_of(dense_model(), tmp_path)))


def test_both_are_timed_and_advice_follows(tmp_path):
    """Which is faster is up to the processor."""
    (finding,) = quantisation(subject_of(quantised(), tmp_path))
    assert finding.effect is not None
    assert bool(finding.advice) == (finding.effect.verdict.decision == "faster")
    assert finding.remedy is None, "it computes something else"
