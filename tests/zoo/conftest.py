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


class Runner:
    """ONNX Runtime, with its graph optimisation off unless that is asked for."""

    def session(self, model: onnx.ModelProto, *, optimised: bool = False) -> ort.InferenceSession:
        options = ort.SessionOptions()
        levels = ort.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def __call__(self, model: onnx.ModelProto, feeds: Arrays) -> dict[str, np.ndarray]:
        """Return the outputs by name."""
        session = self.session(model)
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, dict(feeds)), strict=True))


@pytest.fixture
def run() -> Runner:
    """Run models as they are written."""
    return Runner()


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
