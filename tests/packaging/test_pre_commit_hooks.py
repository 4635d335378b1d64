"""The hooks do their work in pre-commit itself, in a repository of models."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.checkouts import checkout_of, package_files
from support.onnx_models import save
from support.repository import REPOSITORY

HOOKS = REPOSITORY / ".pre-commit-hooks.yaml"
FAST = ["--method", "greedy", "--threads", "1", "--budget", "20s"]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a model that gets several times as fast, one that does not, and a text."""
    for name, value in {"XDG_CACHE_HOME": tmp_path / "cache", "PRE_COMMIT_HOME": tmp_path / "hooks"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    folder = tmp_path / "models"
    (folder / "deep").mkdir(parents=True)
    save(folder / "chain.onnx", "tiny_chain")
    save(folder / "deep/mlp 1.onnx", "mlp")
    (folder / "notes.txt").write_text("no model")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    return folder


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def pre_commit(folder: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pre_commit", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def configured(folder: Path, hook: str) -> None:
    """Set a hook up as the configuration of that repository has it, with the rlflow of this environment."""
    (declared,) = [each for each in yaml.safe_load(HOOKS.read_text()) if each["id"] == hook]
    local = declared | {"language": "system", "args": FAST}
    config = {"repos": [{"repo": "local", "hooks": [local]}]}
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))


def test_pre_commit_reads_the_hooks() -> None:
    code, said = pre_commit(REPOSITORY, "validate-manifest", str(HOOKS))
    assert code == 0, said


@pytest.mark.slow
def test_models_are_checked_then_optimised_and_then_nothing_is_left_to_do(models: Path) -> None:
    configured(models, "rlflow-check")
    before = (models / "chain.onnx").read_bytes()
    code, said = pre_commit(models, "run", "--all-files")
    assert (code, "chain.onnx: can be optimised" in said) == (1, True), said
    assert "notes.txt" not in said
    assert (models / "chain.onnx").read_bytes() == before
    configured(models, "rlflow-optimise")
    code, said = pre_commit(models, "run", "--all-files")
    assert (code, "files were modified by this hook" in said) == (1, True), said
    assert git(models, "diff", "--name-only").split() == ["chain.onnx"]
    code, said = pre_commit(models, "run", "--all-files")
    assert (code, "1 of 2" in said) == (0, False), said
    git(models, "add", "chain.onnx")
    configured(models, "rlflow-check")
    assert pre_commit(models, "run", "--all-files")[0] == 0


@pytest.mark.slow
def test_pre_commit_installs_rlflow_by_itself(models: Path, tmp_path: Path) -> None:
    """Wants the package index that pip is configured with: an environment is made of what the checkout holds."""
    source = checkout_of(REPOSITORY, [*package_files(REPOSITORY), HOOKS.name], tmp_path / "rlflow")
    config = {
        "repos": [
            {
                "repo": str(source),
                "rev": git(source, "rev-parse", "HEAD").strip(),
                "hooks": [{"id": "rlflow-optimise", "args": FAST}],
            }
        ]
    }
    (models / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    code, said = pre_commit(models, "run", "--all-files")
    assert (code, "chain.onnx: optimised" in said) == (1, True), said
    assert pre_commit(models, "run", "--all-files")[0] == 0
