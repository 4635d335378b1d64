"""What measures speed is run by hand, so that only this notices that the library has moved below it."""

import runpy
from pathlib import Path

import pytest
from support.repository import REPOSITORY

BENCHMARKS = sorted((REPOSITORY / "benchmarks").glob("*.py"))


def test_there_are_benchmarks() -> None:
    assert len(BENCHMARKS) > 5


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_a_benchmark_finds_what_it_imports(path: Path) -> None:
    assert callable(runpy.run_path(str(path))["main"])
