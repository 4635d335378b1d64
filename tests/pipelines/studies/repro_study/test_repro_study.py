"""The study of the experiment's repetition: a tiny experiment runs twice, and comes out alike."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tracking.declaration import read_declarations, stage_names


def test_every_stage_comes_after_those_that_it_depends_on(repository: Path) -> None:
    """In the order of which the study runs them one by one."""
    stages, written = read_declarations(repository), {"conf"}
    for name in stage_names(repository):
        made_later = {path for later in stages.values() for path in later.outputs} - written
        assert not made_later & {*stages[name].dependencies}
        written |= {*stages[name].outputs}
    assert len(written) > 10


@pytest.mark.study
@pytest.mark.parametrize(
    "controller", [[], ["controller=cma_es", "controller.cma_es.generations=2"]], ids=["trained", "evolved"]
)
def test_a_tiny_study(repository: Path, study: Callable[..., Path], controller: list[str]) -> None:
    """Of the last commit: rules, rollouts and searches of both runs are equal byte for byte."""
    overrides = f"overrides={['experiment=smoke', *controller]}"
    results = study("repro_study", overrides, f"repository={repository}")
    found = json.loads((results / "repro_study/metrics.json").read_text())
    assert found["unlike"] == found["faults"] == []
    assert found["reproduced"]
    assert found["outputs"]["data/rules"]
    assert found["outputs"]["data/rollouts"]
    assert found["kinds"]["equal"]["figures"] > 100
    assert {*found["runs"]["quiet"]["stages"]} == {*stage_names(repository)} - {"config"}
