"""Quantised models in floats again: what is left is the network that was quantised."""

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, checker, helper
from support.onnx_models import Build, floats

from rlflow.onnx_io.dequantised import dequantised
from rlflow.runtime.session import open_session, run

RNG = np.random.default_rng(0)
SCALES = np.array([0.02, 0.01, 0.03], np.float32)
STORED = RNG.integers(-128, 128, (3, 4)).astype(np.int8)
QUANTISER = {"scale": np.float32(0.05), "zero": np.int8(3)}


def pair(x: str, y: str) -> list:
    ends = ["scale", "zero"]
    return [
        helper.make_node("QuantizeLinear", [x, *ends], [f"{y}/int"]),
        helper.make_node("DequantizeLinear", [f"{y}/int", *ends], [y]),
    ]


@pytest.fixture
def linear(model: Build) -> ModelProto:
    """Y = relu(x W') by input and weights of 8 bits, the weights by a scale for each of their rows."""
    nodes = [
        *pair("x", "rounded"),
        helper.make_node("DequantizeLinear", ["stored", "scales", "zeros"], ["weights"], axis=0),
        helper.make_node("Gemm", ["rounded", "weights"], ["h"], transB=1),
        *pair("h", "h_rounded"),
        helper.make_node("Relu", ["h_rounded"], ["y"]),
    ]
    weights = {"stored": STORED, "scales": SCALES, "zeros": np.zeros(3, np.int8), **QUANTISER}
    return model(nodes, [floats("x", 2, 4)], [floats("y", 2, 3)], weights=weights)


def test_the_network_is_left(linear):
    before = linear.SerializeToString()
    made = dequantised(linear)
    checker.check_model(made, full_check=True)
    assert linear.SerializeToString() == before
    assert [node.op_type for node in made.graph.node] == ["Gemm", "Relu"]
    assert [tensor.name for tensor in made.graph.initializer] == ["weights"]
    x = RNG.standard_normal((2, 4)).astype(np.float32)
    expected = np.maximum(x @ (STORED * SCALES[:, None]).T, 0)
    np.testing.assert_allclose(run(open_session(made, "as_written"), {"x": x})["y"], expected, rtol=1e-5, atol=1e-6)


def test_whole_numbers_between_the_pair_stay(model: Build):
    nodes = pair("x", "y")
    nodes.insert(1, helper.make_node("Transpose", ["y/int"], ["turned"], perm=[1, 0]))
    nodes[2].input[0] = "turned"
    assert dequantised(model(nodes, [floats("x", 2, 4)], [floats("y", 4, 2)], weights=QUANTISER)) is None


def test_another_scale_is_no_pair(model: Build):
    nodes = [*pair("x", "h"), helper.make_node("Relu", ["h"], ["y"])]
    nodes[1].input[1] = "other"
    weights = {**QUANTISER, "other": np.float32(0.1)}
    assert dequantised(model(nodes, [floats("x", 2, 4)], [floats("y", 2, 4)], weights=weights)) is None


def test_what_else_is_read_stays(model: Build):
    """The rounded numbers are an output, and so is what a pair makes of them: both keep their names."""
    nodes = [*pair("x", "h"), helper.make_node("Relu", ["h"], ["y"])]
    whole = helper.make_tensor_value_info("h/int", TensorProto.INT8, [2, 4])
    built = model(nodes, [floats("x", 2, 4)], [floats("y", 2, 4), whole], weights=QUANTISER)
    made = dequantised(built)
    assert [node.op_type for node in made.graph.node] == ["QuantizeLinear", "Relu"]
    x = RNG.standard_normal((2, 4)).astype(np.float32)
    found = run(open_session(made, "as_written"), {"x": x})
    np.testing.assert_array_equal(found["y"], np.maximum(x, 0))
    np.testing.assert_array_equal(found["h/int"], run(open_session(built, "as_written"), {"x": x})["h/int"])
    (only,) = (model(pair("x", "y"), [floats("x", 2, 4)], [floats("y", 2, 4)], weights=QUANTISER),)
    assert dequantised(only) is None, "an output is what it is"


def test_a_model_of_floats_is_no_quantised_one(model: Build):
    assert dequantised(model([helper.make_node("Relu", ["x"], ["y"])], [floats("x", 2)], [floats("y", 2)])) is None
