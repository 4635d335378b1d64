"""A project of two stages, for real DVC, Hydra and MLflow, without anything that takes time."""

import inspect
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig
from support.stages import CONFIG
from tracking.stage import Stage, run_stage

FILES = {
    "conf/config.yaml": """
defaults:
  - _self_
  - graph: small
  - hydra_base
seed: 0
temperature: 1.0
model: conf/graph/file.yaml
first:
  size: 3
""",
    "conf/graph/small.yaml": "# @package graphs.small\n{kind: zoo, entry: tiny_chain}",
    "conf/graph/large.yaml": "# @package graphs.large\n{kind: zoo, entry: tiny_merge}",
    "conf/graph/file.yaml": "# @package graphs.file\n{kind: file, path: '${model}'}",
    "dvc.yaml": """
stages:
  config:
    cmd: python -m tracking.composition
    deps: [conf, "${model}"]
    outs:
      - params.yaml: {cache: false, persist: true}
  first:
    cmd: python pipelines/first.py -cn resolved
    deps: [pipelines/first.py]
    params: [seed, graphs, first]
    outs: [data/first]
    metrics:
      - data/results/first/metrics.json: {cache: false}
  second:
    cmd: python pipelines/second.py -cn resolved
    deps: [pipelines/second.py, data/first]
    params: [seed, temperature]
    outs: [data/second.txt]
""",
    "pipelines/first.py": """
from tracking.stage import Stage, pipeline_stage


@pipeline_stage
def first(stage: Stage) -> None:
    folder = stage.output("data/first")
    folder.mkdir()
    (folder / "size.txt").write_text(str(stage.settings["first"]["size"]))
    stage.metrics.write_text("{}")


if __name__ == "__main__":
    first()
""",
    "pipelines/second.py": """
import os
import signal

from tracking.stage import Stage, pipeline_stage


@pipeline_stage
def second(stage: Stage) -> None:
    size = int(stage.input("data/first/size.txt").read_text())
    done = stage.checkpoint / "done.txt"
    start = int(done.read_text()) if done.exists() else 0
    for step in range(start, size):
        stage.run.log(step, {"step": step})
        done.write_text(str(step + 1))
        if "KILL_AT" in os.environ and step == int(os.environ["KILL_AT"]):
            os.kill(os.getpid(), signal.SIGKILL)
    stage.output("data/second.txt").write_text(f"{stage.settings['temperature']} from {start}")


if __name__ == "__main__":
    second()
""",
    ".gitignore": "/data\n/mlflow.db*\n/mlartifacts\n/outputs\n/multirun\n/.checkpoints\n/.staging\n",
    ".dvcignore": "__pycache__/\n",
}


@pytest.fixture
def project(tmp_path: Path, repository: Path, migrated_database: Path) -> Path:
    """Its files, with this repository's Hydra settings, outside DVC and git."""
    root = tmp_path / "project"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in ("resolved.yaml", "hydra_base.yaml"):
        shutil.copy(repository / "conf" / name, root / "conf" / name)
    shutil.copy(migrated_database, root / "mlflow.db")
    return root


@pytest.fixture
def dvc_project(project: Path, repository: Path, command: Callable) -> Path:
    """The project as a git and DVC repository with one commit, set up as this one."""
    git = ("git", "-c", "user.name=test", "-c", "user.email=test@example.org")
    command("git", "init", "--quiet", cwd=project)
    command("dvc", "init", "--quiet", cwd=project)
    shutil.copy(repository / ".dvc" / "config", project / ".dvc" / "config")
    command("python", "-m", "tracking.composition", cwd=project)
    command("git", "add", ".", cwd=project)
    command(*git, "commit", "--quiet", "-m", "project", cwd=project)
    return project


@pytest.fixture
def start(project: Path, store_root: Path) -> Callable:
    """Run a function as a stage of the project, its outputs in the project."""

    def start(function: Callable[[Stage], Any], config: DictConfig = CONFIG, **options: Any) -> Any:
        script = Path(inspect.getfile(inspect.unwrap(function)))
        return run_stage(function, config, script=script, root=project, output_root=project, overrides=[], **options)

    return start
