"""What a stage declares is all that it can read and write."""

from pathlib import Path

import pytest
from tracking.declaration import outputs_by_kind, read_declaration, stage_names
from tracking.stage import Stage

from rlflow.errors import InputError
from rlflow.schemas import Kind


def test_section_that_is_not_declared_cannot_be_read(start):
    def first(stage: Stage) -> None:
        stage.settings["temperature"]

    with pytest.raises(InputError, match="section temperature is read but not declared"):
        start(first)


def test_input_that_is_not_declared_cannot_be_read(start):
    def second(stage: Stage) -> None:
        assert stage.input("data/first/size.txt").name == "size.txt"
        stage.input("data/first_and_more")

    with pytest.raises(InputError, match="second reads data/first_and_more; add it to the stage's deps"):
        start(second)


def test_output_that_is_not_declared_cannot_be_written(start):
    def second(stage: Stage) -> None:
        stage.output("data/first")

    with pytest.raises(InputError, match="second writes data/first; add it to the stage's outs"):
        start(second)


def test_stage_that_dvc_does_not_know_is_refused(start):
    def third(stage: Stage) -> None:
        raise AssertionError("never called")

    with pytest.raises(InputError, match="has no stage third; the stages are config, first, second"):
        start(third)


ALIKE = """
stages:
  last:
    cmd: last
    deps: [data/model]
    outs: [data/end]
  fit:
    cmd: fit
    deps: [data/rollouts]
    outs: [data/model]
    metrics: [data/results/fit/metrics.json]
  collect:
    foreach: [bert, vit]
    do:
      cmd: collect ${item}
      deps: [conf]
      params: [seed, size]
      outs: [data/rollouts: {meta: {reproduces: equal}}]
"""


def test_stages_of_several_things_are_one(tmp_path: Path):
    (tmp_path / "dvc.yaml").write_text(ALIKE)
    found = read_declaration("collect", tmp_path)
    assert (found.outputs, found.sections, found.dependencies) == (("data/rollouts",), ("seed", "size"), ("conf",))
    assert outputs_by_kind(tmp_path)["data/rollouts"] is Kind.EQUAL


def test_stages_come_after_what_they_read(tmp_path: Path):
    """Although the file has the last one first."""
    (tmp_path / "dvc.yaml").write_text(ALIKE)
    assert list(stage_names(tmp_path)) == ["collect", "fit", "last"]
