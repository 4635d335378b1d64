"""The study of the experiment's repetition: a tiny experiment runs twice, and comes out alike."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from studies.documents import check_results
from tracking.declaration import read_declaration, stage_names


def test_every_stage_comes_after_those_that_it_depends_on(repository: Path) -> None:
    """In the order of which the study runs them one by one."""
    written: set[str] = {"conf"}
    for name in stage_names(repository):
        stage = read_declaration(name, repository)
        made_later = {
            path
            for later in stage_names(repository)
            for path in read_declaration(later, repository).outputs
            if path not in written
        }
        assert not made_later & {*stage.dependencies}
        written |= {*stage.outputs}
    assert len(written) > 10


@pytest.mark.study
@pytest.mark.parametrize(
    "controller", [[], ["controller=cma_es", "controller.cma_es.generations=2"]], ids=["trained", "evolved"]
)
def test_a_tiny_study(repository: Path, store_root: Path, command: Callable, controller: list[str]) -> None:
    """Of the last commit: rules, rollouts and searches of both runs are equal byte for byte."""
    program = (
        "python",
        str(repository / "pipelines/study.py"),
        "repro_study",
        f"overrides={['experiment=smoke', *controller]}",
    )
    command(*program, f"repository={repository}", cwd=store_root)
    results = store_root / "data/results"
    assert check_results(results) == []
    found = json.loads((results / "repro_study/metrics.json").read_text())
    assert found["unlike"] == found["faults"] == []
    assert found["reproduced"]
    assert found["outputs"]["data/rules"]
    assert found["outputs"]["data/rollouts"]
    assert found["kinds"]["equal"]["figures"] > 100
    assert {*found["runs"]["quiet"]["stages"]} == {*stage_names(repository)} - {"config"}
