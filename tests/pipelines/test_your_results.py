"""What is said of the results of a run of one's own, beside the published ones of the last commit."""

import json
import runpy
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.checkouts import checkout_of


@pytest.fixture
def describe(repository: Path) -> Callable[[Path], str]:
    return runpy.run_path(str(repository / "pipelines/your_results.py"))["describe"]


@pytest.fixture
def checkout(repository: Path, tmp_path: Path) -> Path:
    """A repository of its own with the results that this one has published."""
    return checkout_of(repository, ["data/results/evaluate/metrics.json", "dvc.lock", "params.yaml"], tmp_path)


def test_published_results_are_told_from_own_ones(describe: Callable[[Path], str], checkout: Path) -> None:
    assert "They are the published ones" in describe(checkout)
    path = checkout / "data/results/evaluate/metrics.json"
    metrics = json.loads(path.read_text())
    graph, methods = next(iter(metrics.items()))
    before = methods["original"]["improvement_percent"]
    methods["original"]["improvement_percent"] = 12.5
    path.write_text(json.dumps(metrics))
    told = describe(checkout)
    (row,) = (line.split() for line in told.splitlines() if line.split()[:2] == [graph, "original"])
    assert row[4:] == [f"{before:.2f}", "12.50"]
    assert "differ from the last commit, as `git status` lists them: 1." in told


def test_the_command_that_is_told_brings_the_published_results_back(
    describe: Callable[[Path], str], checkout: Path
) -> None:
    path = checkout / "data/results/evaluate/metrics.json"
    published = path.read_text()
    path.write_text(json.dumps({f"another {graph}": methods for graph, methods in json.loads(published).items()}))
    told = describe(checkout)
    assert "none" in told
    command = told.split("back  ")[1].strip().split()
    subprocess.run(command, cwd=checkout, check=True)
    assert path.read_text() == published
    assert "They are the published ones" in describe(checkout)


def test_without_git_there_is_nothing_to_compare_with(describe: Callable[[Path], str], tmp_path: Path) -> None:
    assert "No commit here has published ones" in describe(tmp_path)
