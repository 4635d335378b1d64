"""Where a run comes from: its commit, what differs from it, and the process that holds it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.checkouts import checkout_of
from tracking.provenance import changed, committed, is_gone, process_tag, source_tags


@pytest.fixture
def checkout(repository: Path, tmp_path: Path) -> Path:
    return checkout_of(repository, ["LICENSE", "dvc.lock"], tmp_path)


def test_tags_name_the_commit_and_tell_of_changes(checkout: Path) -> None:
    clean = source_tags(checkout, ["seed=1"])
    assert len(clean["mlflow.source.git.commit"]) == 40
    assert (clean["git.dirty"], clean["hydra.overrides"]) == ("false", "seed=1")
    (checkout / "dvc.lock").write_text("other\n")
    dirty = source_tags(checkout)
    assert dirty["git.dirty"] == "true"
    assert dirty["dvc.lock.md5"] != clean["dvc.lock.md5"]
    assert "hydra.overrides" not in dirty


def test_the_committed_text_stays_whatever_is_written_over_it(checkout: Path, repository: Path) -> None:
    (checkout / "LICENSE").write_text("none\n")
    assert committed(checkout, "LICENSE") == (repository / "LICENSE").read_text()
    assert changed(checkout, "LICENSE", "dvc.lock") == ["LICENSE"]
    assert changed(checkout, "dvc.lock") == []
    assert committed(checkout, "absent") is None


def test_outside_a_checkout_nothing_is_known(tmp_path: Path) -> None:
    assert committed(tmp_path, "LICENSE") is None
    assert changed(tmp_path, ".") == []
    assert not {"mlflow.source.git.commit", "git.dirty"} & set(source_tags(tmp_path))


def test_a_process_is_gone_when_it_has_ended_and_not_when_its_number_is_used_again() -> None:
    own = process_tag()
    assert not is_gone(own)
    host, number, started = own.rsplit(" ", 2)
    assert is_gone(f"{host} {number} {float(started) - 100:.2f}")
    assert not is_gone(f"another-{host} {number} 0.00")
    script = "from tracking.provenance import process_tag; print(process_tag())"
    ended = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, env=os.environ)
    assert is_gone(ended.stdout.strip())
