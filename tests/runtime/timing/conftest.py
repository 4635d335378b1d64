"""Fragments to be timed."""

from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from support.small_models import ModelBuilder


@pytest.fixture
def make_matmul(make_model: ModelBuilder) -> Callable[[int, int], ModelProto]:
    """Build a product of so many rows by a square weight."""

    def build(rows: int, width: int) -> ModelProto:
        return make_model(
            [helper.make_node("MatMul", ["x", "w"], ["y"])],
            [("x", TensorProto.FLOAT, [rows, width])],
            [("y", TensorProto.FLOAT, [rows, width])],
            {"w": np.random.default_rng(0).standard_normal((width, width), np.float32)},
        )

    return build
