"""Results documents, one for each schema."""

from typing import Any

import pytest
from support import documents as examples


@pytest.fixture
def documents() -> dict[str, Any]:
    return examples.documents()


@pytest.fixture
def evaluation(documents: dict[str, Any]) -> dict[str, Any]:
    return documents["evaluate"]
