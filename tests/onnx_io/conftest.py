"""Models written with onnx.helper, and a check that a model survives import and export."""

import pytest
from support.onnx_models import Build, Survives, assert_survives, build_model


@pytest.fixture
def model() -> Build:
    return build_model


@pytest.fixture
def survives() -> Survives:
    return assert_survives
