"""`make verify-repro` in checkouts of their own: what is told of a fresh run, and with which exit code."""

import json
import runpy
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from experiment.documents.reproduction import ReproductionReport
from experiment.results import read_results
from studies.documents import document_type
from support.checkouts import COMMIT, checkout_of
from tracking.declaration import outputs_by_kind

from rlflow import schemas
from rlflow.schemas import Kind

EVALUATION = "data/results/evaluate/metrics.json"
Main = Callable[[list[str], Path], int]


@pytest.fixture
def main(repository: Path) -> Main:
    return runpy.run_path(str(repository / "pipelines/verify_repro.py"))["main"]


@pytest.fixture
def checkout(repository: Path, tmp_path: Path) -> Path:
    """A repository with what this one has published, and a lock that has every output."""
    outputs = outputs_by_kind(repository)
    files = [path for path in outputs if document_type(Path(path))]
    folder = checkout_of(repository, [*files, "dvc.yaml", "params.yaml"], tmp_path)
    write_lock(folder, dict.fromkeys(outputs, "0" * 32))
    commit(folder)
    return folder


def write_lock(folder: Path, digests: dict[str, str]) -> None:
    outs = [{"path": path, "hash": "md5", "md5": digest} for path, digest in digests.items()]
    (folder / "dvc.lock").write_text(json.dumps({"schema": "2.0", "stages": {"all": {"cmd": "true", "outs": outs}}}))


def commit(folder: Path) -> None:
    for command in (["add", "."], COMMIT):
        subprocess.run(["git", *command], cwd=folder, check=True)


def change_steps(folder: Path) -> str:
    """Give the last method of the evaluation another step; returns the place."""
    metrics = read_results(folder / EVALUATION)
    graph, methods = next(iter(metrics.items()))
    methods["original"]["steps"] += 1
    (folder / EVALUATION).write_text(json.dumps(metrics))
    return f"/{graph}/original/steps"


def test_the_published_results_are_reproduced(main: Main, checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], checkout) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0] == "Published: HEAD. Fresh: the working tree."
    assert text.splitlines()[-1] == "Reproduced."


def test_a_changed_figure_is_told_and_the_published_one_can_be_brought_back(
    main: Main, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = change_steps(checkout)
    assert main([], checkout) == 1
    text = capsys.readouterr().out
    assert place in text
    command = text.split("`")[1].split()
    assert command[:2] == ["git", "checkout"]
    subprocess.run(command, cwd=checkout, check=True)
    assert main([], checkout) == 0


def test_bytes_are_compared_by_what_dvc_has_locked(
    main: Main, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = outputs_by_kind(checkout)
    write_lock(checkout, {path: "0" * 32 if kind is Kind.EQUAL else "1" * 32 for path, kind in outputs.items()})
    assert main(["--json"], checkout) == 0
    document = json.loads(capsys.readouterr().out)
    schemas.validate(ReproductionReport, document)
    same = {output["path"]: output["same_bytes"] for output in document["outputs"]}
    assert same["data/rules"]
    assert not same["data/policies"]
    write_lock(checkout, dict.fromkeys(outputs, "1" * 32))
    assert main(["--json"], checkout) == 1
    unlike = json.loads(capsys.readouterr().out)["unlike"]
    assert [entry["file"] for entry in unlike] == ["params.yaml", "data/code.yaml", "data/rules"]


def test_two_revisions_and_another_checkout(
    main: Main, checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    subprocess.run(["git", "tag", "v1"], cwd=checkout, check=True)
    change_steps(checkout)
    commit(checkout)
    assert main([], checkout) == 0
    assert main(["--published", "v1"], checkout) == 1
    assert main(["v1"], checkout) == 1
    assert main(["v1", "--published", "v1"], checkout) == 0
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "clone"
    subprocess.run(["git", "clone", "--quiet", str(checkout), str(elsewhere)], check=True)
    assert main([str(elsewhere)], checkout) == 0
    assert main([str(elsewhere), "--published", "v1"], checkout) == 1


def test_what_is_neither_folder_nor_revision_is_refused(
    main: Main, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["no-such-thing"], checkout) == 2
    assert capsys.readouterr().err.startswith("no-such-thing is neither a folder nor a revision that git knows")


def test_a_run_without_results_is_not_reproduced(
    main: Main, checkout: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty folder has nothing that could differ, and is not the published run for that."""
    assert main([str(tmp_path_factory.mktemp("empty")), "--json"], checkout) == 1
    document = json.loads(capsys.readouterr().out)
    assert len(document["faults"]) >= 8
    assert len(document["unlike"]) == len(document["outputs"]) >= 8
