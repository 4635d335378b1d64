"""Results documents with the numbers that tests name."""

from typing import Any

import pytest
from support import documents as examples


@pytest.fixture
def documents() -> dict[str, Any]:
    return examples.documents()


@pytest.fixture
def evaluation(documents: dict[str, Any]) -> dict[str, Any]:
    return documents["evaluate"]


@pytest.fixture
def rules_applied(documents: dict[str, Any]) -> dict[str, Any]:
    return documents["rules_applied"]


@pytest.fixture
def sweep(documents: dict[str, Any]) -> dict[str, Any]:
    return documents["temperature_sweep"]
