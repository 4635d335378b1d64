"""The backend whose tests these are, one for all of them: it keeps nothing but what it has computed."""

import pytest

from rlflow.passes.xla.backend import XlaBackend


@pytest.fixture(scope="session")
def xla() -> XlaBackend:
    return XlaBackend()
