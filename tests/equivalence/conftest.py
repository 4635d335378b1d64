"""Small real models, made node by node."""

from collections.abc import Callable

import pytest
from onnx import ModelProto
from support.small_models import ModelBuilder, build_model, dense_model, pair_model


@pytest.fixture
def make_model() -> ModelBuilder:
    return build_model


@pytest.fixture
def make_dense() -> ModelBuilder:
    return dense_model


@pytest.fixture
def float_pair() -> Callable[..., ModelProto]:
    return pair_model
