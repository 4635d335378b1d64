"""A study's program as a user starts it, on a small scale in a folder of its own."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from studies.documents import check_results

from rlflow import zoo
from rlflow.onnx_io import save_model

Ended = subprocess.CompletedProcess[str]


@pytest.fixture
def started(repository: Path, store_root: Path, command: Callable[..., Ended]) -> Callable[..., Ended]:
    """Start the program of a study, however it ends."""

    def started(name: str, *arguments: str) -> Ended:
        program = ("python", str(repository / "pipelines/study.py"), name, *arguments)
        return command(*program, cwd=store_root, check=False)

    return started


@pytest.fixture
def study(started: Callable[..., Ended], store_root: Path) -> Callable[..., Path]:
    """Run the program of a study to its end; returns the folder of results.

    What it has published, if anything, is what its document types admit, and of the run itself nothing is left to go
    on from.
    """

    def study(name: str, *arguments: str) -> Path:
        kept = store_root / ".checkpoints" / name.partition(".")[0]
        before = {*kept.glob("*")}
        ended = started(name, *arguments)
        assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
        results = store_root / "data/results"
        assert not results.exists() or check_results(results) == []
        assert {*kept.glob("*")} <= before
        return results

    return study


@pytest.fixture
def study_refused(started: Callable[..., Ended]) -> Callable[..., str]:
    """Start the program of a study that cannot come to its end; returns what it says."""

    def study_refused(name: str, *arguments: str) -> str:
        ended = started(name, *arguments)
        assert ended.returncode
        return ended.stdout + ended.stderr

    return study_refused


@pytest.fixture(scope="session")
def tiny_merge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small model in which all searches find something."""
    path = tmp_path_factory.mktemp("model") / "tiny_merge.onnx"
    save_model(zoo.build("tiny_merge"), path)
    return path
