"""What the tests of all zoo models share: running a model as written, drawing its inputs, and a tolerance."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from onnx import numpy_helper

from rlflow.zoo.builder import CONSTANTS

Arrays = Mapping[str, np.ndarray]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def run() -> Callable[[onnx.ModelProto, Arrays], dict[str, np.ndarray]]:
    """Outputs by name, from ONNX Runtime with its graph optimisation off."""

    def run_model(model: onnx.ModelProto, feeds: Arrays) -> dict[str, np.ndarray]:
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, dict(feeds)), strict=True))

    return run_model


@pytest.fixture
def parameters() -> Callable[[onnx.ModelProto], dict[str, np.ndarray]]:
    """The drawn initialisers by name, without the constants of the architecture."""

    def of_model(model: onnx.ModelProto) -> dict[str, np.ndarray]:
        return {
            tensor.name: numpy_helper.to_array(tensor)
            for tensor in model.graph.initializer
            if not tensor.name.startswith(CONSTANTS)
        }

    return of_model


@pytest.fixture
def reorder() -> Callable[[onnx.ModelProto, str], onnx.ModelProto]:
    """A copy of the model in which one parameter's values stand in reverse order."""

    def reordered(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        (tensor,) = (tensor for tensor in changed.graph.initializer if tensor.name == name)
        values = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array(np.flip(values).copy(), name))
        return changed

    return reordered


@pytest.fixture
def assert_close() -> Callable[..., None]:
    """Equality of float32 results that were computed in different orders.

    Each of `depth` operators on a path rounds sums of up to `terms` terms. Rounding errors are independent and
    add in quadrature (the probabilistic bound of Higham and Mary 2019), so about sqrt(depth * terms) units in
    the last place are expected, here relative to the largest value.
    """

    def check(actual: np.ndarray, expected: np.ndarray, *, depth: int, terms: int) -> None:
        assert actual.shape == expected.shape
        assert np.isfinite(expected).all()
        assert error(actual, expected) <= tolerance_of(depth, terms)

    return check


@pytest.fixture
def assert_differs() -> Callable[..., None]:
    """A difference ten times as large as rounding could make."""

    def check(actual: np.ndarray, expected: np.ndarray, *, depth: int, terms: int) -> None:
        assert error(actual, expected) > 10 * tolerance_of(depth, terms)

    return check


def tolerance_of(depth: int, terms: int) -> float:
    return float(np.sqrt(depth * terms) * np.finfo(np.float32).eps)


def error(actual: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(actual - expected).max() / np.abs(expected).max())
