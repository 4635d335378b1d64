"""Studies are run by their names, and all that documents name exists."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from study import ENDS, programs, projects


@pytest.mark.parametrize("module", programs().values())
def test_every_program_can_be_imported_and_has_a_main(module: str) -> None:
    """Nothing runs, since a program is a function."""
    assert callable(import_module(module).main)


def test_a_name_is_a_study_or_a_program_of_one() -> None:
    assert programs()["headroom"] == "studies.headroom.headroom"
    assert programs()["headroom.latency"] == "studies.headroom.latency"
    assert set(projects()) == {"paper", "pass_ordering", "policy"}
    assert not set(projects()) & set(programs()), "a project and a program of one name"
    assert set(ENDS) <= set(projects())
    assert set(ENDS.values()) <= set(programs())


def test_documents_name_studies_that_there_are(repository: Path) -> None:
    known = {*programs(), *projects()}
    documents = [repository / "README.md", *(repository / "docs").glob("*.md"), *(repository / "conf").rglob("*.yaml")]
    pattern = r"(?:make study NAME=[\"']?|pipelines/study\.py )([\w.]+)"
    named = {name.rstrip(".") for path in documents for name in re.findall(pattern, path.read_text())}
    assert len(named) > 10
    assert named - {"NAME"} <= known


def test_an_unknown_name_is_answered_with_all_names(repository: Path, command: Callable) -> None:
    refused = command("python", str(repository / "pipelines/study.py"), "heardoom", cwd=repository, check=False)
    assert refused.returncode == 1
    assert "NAME is one of: agent, borders, budgets, cost_accuracy, headroom, headroom.latency" in refused.stderr
    assert "Traceback" not in refused.stderr
