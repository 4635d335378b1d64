"""The pattern that ties Hydra to DVC, through real DVC: `dvc repro` alone would never notice an edit in conf/."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tracking.store import open_store

GIT = ("git", "-c", "user.name=test", "-c", "user.email=test@example.org")


@pytest.fixture
def repro(dvc_project: Path, command: Callable) -> Callable[[], list[str]]:
    """`dvc repro`; answers with the stages that ran."""

    def repro(*arguments: str) -> list[str]:
        answer = command("dvc", "repro", *arguments, cwd=dvc_project)
        return re.findall(r"Running stage '(\w+)'", answer.stdout)

    return repro


@pytest.mark.study  # a quarter of a minute
def test_edit_in_conf_runs_what_depends_on_it(repro: Callable, dvc_project: Path):
    config = dvc_project / "conf/config.yaml"
    assert repro() == ["config", "first", "second"]
    assert repro() == []
    config.write_text(config.read_text().replace("temperature: 1.0", "temperature: 0.5"))
    assert repro() == ["config", "second"]
    assert (dvc_project / "data/second.txt").read_text() == "0.5 from 0"
    config.write_text(config.read_text() + "# a remark\n")
    assert repro() == ["config"]


@pytest.mark.study  # as `make smoke` does with every stage
def test_experiment_outside_the_workspace(repro: Callable, dvc_project: Path, command: Callable):
    """Its overrides count, its run is in the store of the main checkout, and the workspace stays as it is."""
    repro()
    before = command("git", "status", "--porcelain", cwd=dvc_project).stdout
    command("dvc", "exp", "run", "--temp", "--name", "cold", "-S", "temperature=0.25", cwd=dvc_project)
    assert command("git", "status", "--porcelain", cwd=dvc_project).stdout == before
    assert (dvc_project / "data/second.txt").read_text() == "1.0 from 0"
    runs = open_store(dvc_project).client.search_runs(["1"], "params.temperature = '0.25'")
    assert [run.info.run_name for run in runs] == ["second/small/0"]
    assert runs[0].data.tags["dvc.exp.name"] == "cold"
    assert not list(dvc_project.glob(".dvc/tmp/exps/**/mlflow.db"))


@pytest.mark.study  # half a minute
def test_queued_experiments_are_one_for_each_value(repro: Callable, dvc_project: Path, command: Callable):
    """Each is kept with its settings and has a run of its own, and the workspace is as it was."""
    repro()
    command("git", "add", ".", cwd=dvc_project)
    command(*GIT, "commit", "--quiet", "-m", "run", cwd=dvc_project)
    queued = command("dvc", "exp", "run", "--queue", "-S", "temperature=0.5,0.25", cwd=dvc_project).stdout
    names = re.findall(r"Queueing with overrides '\{'params.yaml': \['temperature=([\d.]+)'", queued)
    assert names == ["0.5", "0.25"], queued
    command("dvc", "exp", "run", "--run-all", cwd=dvc_project)

    kept = command("git", "for-each-ref", "--format=%(objectname)", "refs/exps/**", cwd=dvc_project).stdout.split()
    settings = [command("git", "show", f"{commit}:params.yaml", cwd=dvc_project).stdout for commit in kept]
    for temperature in names:
        assert sum(f"temperature: {temperature}\n" in text for text in settings) == 1
        runs = open_store(dvc_project).client.search_runs(["1"], f"params.temperature = '{temperature}'")
        assert [run.info.status for run in runs] == ["FINISHED"]
    assert (dvc_project / "data/second.txt").read_text() == "1.0 from 0"


@pytest.mark.study  # an edit in conf/, below, takes the same way
def test_graph_from_a_file_runs_again_when_the_file_changes(repro: Callable, dvc_project: Path, command: Callable):
    model = dvc_project / "my.onnx"
    model.write_bytes(b"first")
    select = ("-S", "graph=file", "-S", "model=my.onnx")
    command("dvc", "exp", "run", *select, cwd=dvc_project)
    assert "  my:\n" in (dvc_project / "params.yaml").read_text()
    assert repro() == []
    model.write_bytes(b"second")
    command("dvc", "exp", "run", *select, cwd=dvc_project)
    names = [run.info.run_name for run in open_store(dvc_project).client.search_runs(["1"])]
    assert names.count("first/my/0") == 2


@pytest.mark.study  # beside the test before it
def test_graph_from_a_file_in_conf_runs_again_when_the_file_changes(repro: Callable, dvc_project: Path):
    model, config = dvc_project / "my.onnx", dvc_project / "conf/config.yaml"
    model.write_bytes(b"first")
    own = (
        config.read_text()
        .replace("graph: small", "graph: file")
        .replace("model: conf/graph/file.yaml", "model: my.onnx")
    )
    config.write_text(own)
    assert repro() == ["config", "first", "second"]
    assert repro() == ["config"]  # DVC reads the name of the file before params.yaml is composed: one time late
    assert repro() == []
    model.write_bytes(b"second")
    assert repro() == ["config", "first"]


@pytest.mark.slow
def test_killed_repro_goes_on(repro: Callable, dvc_project: Path, command: Callable):
    killed = command("dvc", "repro", cwd=dvc_project, check=False, KILL_AT="1")
    assert killed.returncode != 0
    assert repro() == ["second"]
    assert (dvc_project / "data/second.txt").read_text() == "1.0 from 2"
    runs = open_store(dvc_project).client.search_runs(["1", "2"], "attributes.run_name = 'second/small/0'")
    assert sorted(run.info.status for run in runs) == ["FINISHED", "KILLED"]


@pytest.mark.study  # as the experiments above
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("graph=file", "graph=file is a model of your own: give the path of its ONNX file, graph=file model=my.onnx"),
        ("temperature=hot", "temperature: Expected `float`, got `str`, and it is 'hot'"),
    ],
)
def test_what_an_experiment_cannot_be_is_told_in_one_sentence(
    dvc_project: Path, command: Callable, wrong: str, told: str
):
    """By the first stage, before the others begin."""
    answer = command("dvc", "exp", "run", "--temp", "-S", wrong, cwd=dvc_project, check=False)
    assert answer.returncode != 0
    assert told in answer.stderr
    assert "Traceback" not in answer.stderr
    assert "Running stage 'first'" not in answer.stdout
