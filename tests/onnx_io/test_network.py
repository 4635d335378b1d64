"""Networks written as ONNX models: ONNX Runtime computes them, and the same network is the same bytes."""

import numpy as np
import onnx
import pytest

from rlflow.onnx_io.network import Model, Network, texts_of
from rlflow.runtime.session import SETTINGS, open_session, run

WEIGHT, BIAS = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([-20, 1], np.float32)


def relu_layer(weight: np.ndarray = WEIGHT) -> Model:
    network = Network()
    x = network.input("x", np.float32, ["rows", 3])
    return network.model({"y": network.add("Relu", network.add("Gemm", x, weight, BIAS, transB=1))}, ["rows", 2])


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("rows", [1, 4])
def test_a_layer_in_closed_form(setting, rows: int):
    x = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
    y = run(open_session(relu_layer(), setting), {"x": x})["y"]
    np.testing.assert_array_equal(y, np.maximum(x @ WEIGHT.T + BIAS, 0))
    assert (y == 0).any(), "or there was nothing to cut off"


def test_the_same_network_is_the_same_bytes():
    """In whichever order a weight lies in memory."""
    turned = np.asfortranarray(WEIGHT)
    assert relu_layer().SerializeToString() == relu_layer(turned).SerializeToString()
    assert relu_layer().SerializeToString() != relu_layer(WEIGHT + 1).SerializeToString()


def test_texts_stay_beside_a_model():
    network = Network()
    x = network.input("x", np.float32, [])
    model = network.model({"y": network.add("Neg", x)}, [], {"made_by": "a test"})
    assert texts_of(onnx.load_from_string(model.SerializeToString())) == {"made_by": "a test"}


def test_what_is_no_operator_is_refused():
    network = Network()
    y = network.add("Magic", network.input("x", np.float32, []))
    with pytest.raises(onnx.checker.ValidationError, match="Magic"):
        network.model({"y": y}, [])
