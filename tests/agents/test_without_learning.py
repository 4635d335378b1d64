"""The method "rlflow" where nothing of the extra `learn` is installed: it optimises, and says what training wants."""

import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from rlflow import zoo
from rlflow.extras import EXTRAS

HIDDEN = f"""
import sys
from importlib.machinery import PathFinder

class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.partition(".")[0] in {EXTRAS["learn"]!r}
        return None if hidden else super().find_spec(name, path, target)

sys.meta_path[:] = [Hiding if finder is PathFinder else finder for finder in sys.meta_path]
"""
OPTIMISE = """
import json, rlflow
found = rlflow.optimise("in.onnx", method="rlflow", options={"rewrites": 60}, cost_model="analytic", budget_s=60)
print(json.dumps([found.result.start_ms, found.result.best_ms, found.result.effort.rewrites]))
"""
COMMAND = "from rlflow.cli import main; sys.argv[1:] = {arguments!r}; main()"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model, and a place where `dvc repro` might have left a policy of the paper's formulation."""
    onnx.save(zoo.build("tiny_transpose"), tmp_path / "in.onnx")
    (tmp_path / "data/policies/bert").mkdir(parents=True)
    return tmp_path


def run(script: str, folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", HIDDEN + script], cwd=folder, capture_output=True, text=True)


def test_they_cannot_be_imported(folder: Path):
    """Or the other tests would say nothing."""
    for module in EXTRAS["learn"]:
        assert f"No module named '{module}'" in run(f"import {module}", folder).stderr


@pytest.mark.slow
def test_the_policy_that_ships_searches(folder: Path):
    done = run(OPTIMISE, folder)
    assert done.returncode == 0, done.stderr
    start_ms, best_ms, rewrites = json.loads(done.stdout)
    assert best_ms < start_ms
    assert rewrites >= 60


@pytest.mark.parametrize(
    ("arguments", "needed_by"),
    [
        (["train", "in.onnx", "--policy-out", "policy"], "rlflow train"),
        (
            ["optimise", "in.onnx", "-o", "out.onnx", "--method", "rlflow", "--trained-on", "bert"],
            "the policy in data/policies/bert",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_trains_says_what_it_wants(folder: Path, arguments: list[str], needed_by: str):
    done = run(COMMAND.format(arguments=arguments), folder)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"rlflow: {needed_by} needs torch, stable_baselines3, ")
    assert done.stderr.endswith("which are not installed: pip install 'rlflow[learn]'\n")
