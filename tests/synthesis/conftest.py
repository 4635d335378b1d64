"""Two small families, each generated once."""

import pytest
from support.generation import SMALL
from support.movement import found

from rlflow.synthesis.generate import GenerationReport, generate


@pytest.fixture(scope="session")
def slices() -> GenerationReport:
    return found("Relu", "Slice", "Concat")


@pytest.fixture(scope="session")
def small() -> GenerationReport:
    return generate(SMALL)
