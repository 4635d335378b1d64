"""What a stage declares is all that it can read and write."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tracking.declaration import name_in_round, outputs_by_kind, read_declaration, stage_names
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


ROUNDS = """
stages:
  last:
    cmd: last
    deps: [data/model]
    outs: [data/end]
  collect:
    foreach: &rounds
      first: {data: data/rounds/first, results: data/results/rounds/first, before: conf}
      second: {data: data, results: data/results, before: data/rounds/first}
    do:
      cmd: collect ${key}
      deps: ["${item.before}"]
      params: [seed, "rounds.${key}.size"]
      outs: ["${item.data}/rollouts": {meta: {reproduces: equal}}]
  fit:
    foreach: *rounds
    do:
      cmd: fit
      deps: ["${item.data}/rollouts"]
      outs: ["${item.data}/model"]
      metrics: ["${item.results}/fit/metrics.json"]
"""


def test_each_round_is_a_stage(tmp_path: Path):
    (tmp_path / "dvc.yaml").write_text(ROUNDS)
    first, second = (read_declaration(f"collect@{name}", tmp_path) for name in ("first", "second"))
    assert first.outputs == ("data/rounds/first/rollouts",)
    assert first.sections == ("seed", "rounds.first.size")
    assert (first.data, first.before, first.results) == ("data/rounds/first", None, "data/results/rounds/first/collect")
    assert (second.data, second.before, second.results) == ("data", "data/rounds/first", "data/results/collect")
    assert second.dependencies == ("data/rounds/first",)
    assert outputs_by_kind(tmp_path)["data/rollouts"] is Kind.EQUAL
    assert name_in_round("fit", "first", tmp_path) == "fit@first"
    assert name_in_round("last", "first", tmp_path) == "last"


def test_stages_come_after_what_they_read(tmp_path: Path):
    """Round after round, although the file has stage after stage and the last one first."""
    (tmp_path / "dvc.yaml").write_text(ROUNDS)
    order = ["collect@first", "fit@first", "collect@second", "fit@second", "last"]
    assert list(stage_names(tmp_path)) == order


def test_dvc_reads_rounds_alike(tmp_path: Path, command: Callable):
    """By the same names."""
    (tmp_path / "dvc.yaml").write_text(ROUNDS)
    command("git", "init", "--quiet", cwd=tmp_path)
    command("dvc", "init", "--quiet", cwd=tmp_path)
    listed = command("dvc", "stage", "list", "--name-only", cwd=tmp_path).stdout.split()
    assert set(listed) == set(stage_names(tmp_path))
