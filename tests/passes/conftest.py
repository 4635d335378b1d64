"""A backend of a stranger's package, in a process of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.toy_compiler import announce

from rlflow.passes.worker import Limits, WorkerBackend


@pytest.fixture
def announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy compiler can be found by its name, here and in processes that are started from here."""
    announce(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.fixture
def toy(announced: None) -> Iterator[WorkerBackend]:
    with WorkerBackend("toy", Limits(longest_pass_s=30.0, longest_s=60.0)) as backend:
        yield backend
