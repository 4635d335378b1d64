"""Jobs of a sweep that are programs of their own find the modules beside the program that was started."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import OmegaConf
from tracking.launching import ModulesBeside

IMPORTS_WHAT_LIES_BESIDE = """
from beside import size
from tracking.stage import Stage, pipeline_stage


@pipeline_stage
def first(stage: Stage) -> None:
    stage.output("data/first").mkdir()
    stage.metrics.write_text("{}")
    stage.run.log(0, {"size": float(size())})


if __name__ == "__main__":
    first()
"""


@pytest.mark.study  # half a minute
def test_submitit_runs_a_program_of_several_files(project: Path, command: Callable) -> None:
    """On this machine, in processes that Submitit starts; without the callback they do not find `beside`."""
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="the extra `experiments` has it")
    (project / "pipelines/first.py").write_text(IMPORTS_WHAT_LIES_BESIDE)
    (project / "pipelines/beside.py").write_text("def size() -> int:\n    return 3\n")
    sweep = ("python", "pipelines/first.py", "--multirun", "seed=0", "hydra/launcher=submitit_local")
    command(*sweep, cwd=project)
    refused = command(*sweep, "~hydra.callbacks.modules_beside", cwd=project, check=False)
    assert refused.returncode
    assert "No module named 'beside'" in refused.stdout + refused.stderr


@pytest.mark.parametrize("before", [None, "src"])
def test_the_environment_is_as_it_was_after_the_sweep(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if before is not None:
        monkeypatch.setenv("PYTHONPATH", before)
    callback, nothing = ModulesBeside(), OmegaConf.create()
    callback.on_multirun_start(nothing)
    folders = os.environ["PYTHONPATH"].split(os.pathsep)
    assert folders == [folder for folder in (sys.path[0], before) if folder]
    callback.on_multirun_end(nothing)
    assert os.environ.get("PYTHONPATH") == before
