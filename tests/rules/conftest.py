"""What the tests of rules share: a small BERT."""

import pytest

from rlflow import zoo
from rlflow.ir import Graph
from rlflow.onnx_io import from_onnx


@pytest.fixture(scope="session")
def bert() -> Graph:
    """Two layers of a narrow BERT: 77 operators, every kind that the large one has."""
    settings = {"layers": 2, "hidden": 32, "heads": 4, "intermediate": 64, "sequence": 8, "vocabulary": 50}
    return from_onnx(zoo.build("bert", **settings))
