"""Fixtures that several parts of the tests share."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from support.checkouts import publishable as publishable_of
from support.repository import REPOSITORY
from support.rotating_sample import sample, turn

if TYPE_CHECKING:
    from rlflow.rules.library import Library

os.environ.setdefault("OMP_NUM_THREADS", "1")
# Programs that tests start import what lies in pipelines/ from wherever they are.
_BEFORE = os.environ.get("PYTHONPATH", "")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(REPOSITORY / "pipelines"), _BEFORE]))
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("DVC_NO_ANALYTICS", "1")
os.environ.setdefault("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "false")  # a slow test would have metrics of its own

# No test fails for being slow: machines are shared, and the first example may pay for an import.
settings.register_profile("rlflow", deadline=None)
settings.load_profile("rlflow")


_FEW = 8
"""Cases of a test that are all played, whatever `TURNS` says."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Play, with TURNS=3, a third of the cases of tests with many; the next two commits play the others."""
    turns = int(os.environ.get("TURNS", "1"))
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    now = turn(REPOSITORY, date.today())
    chosen = {
        item
        for cases in families.values()
        for item in (cases if len(cases) <= _FEW else sample(cases, now, -(-len(cases) // turns)))
    }
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of this checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def library() -> "Library":
    """The shipped library of rules."""
    from rlflow.rules.library import load  # after OMP_NUM_THREADS is set, as numpy reads it when it is imported

    return load()


@pytest.fixture(scope="session")
def publishable(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """The last commit as it is published, and this checkout as it would be next, with a run of one's own or new pages.

    What is compared with figures must be that of one of them.
    """
    return publishable_of(REPOSITORY, tmp_path_factory.mktemp("last_commit"))


@pytest.fixture(scope="session")
def migrated_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty MLflow database; its migration takes seconds, a copy of it none."""
    from mlflow import MlflowClient  # which takes as long to import as a test may take

    database = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(f"sqlite:///{database}").search_experiments()
    return database


@pytest.fixture
def store_root(tmp_path: Path, migrated_database: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a store of its own, which is where everything of this test looks for one."""
    shutil.copy(migrated_database, tmp_path / "mlflow.db")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("MLFLOW_DEFAULT_ARTIFACT_ROOT", raising=False)
    monkeypatch.delenv("RLFLOW_PARENT_RUN", raising=False)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    return tmp_path


@pytest.fixture
def command(repository: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a program of this environment in a folder, as a user would, and not as a part of a DVC stage."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("DVC_", "RLFLOW_", "HYDRA_"))}
    inherited |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "DVC_NO_ANALYTICS": "1"}

    def run(*arguments: str, cwd: Path, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
        answer = subprocess.run(arguments, cwd=cwd, env=inherited | variables, capture_output=True, text=True)
        assert not check or answer.returncode == 0, f"{arguments}: {answer.stdout}\n{answer.stderr}"
        return answer

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which certificates this run made again, as another commit makes others (`tests/rules`)."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    made = [value for report in reports for name, value in report.user_properties if name == "certificate made again"]
    if made:
        terminalreporter.write_sep("-", f"{len(made)} certificates made again")
        terminalreporter.write_line(" ".join(sorted(made)))
