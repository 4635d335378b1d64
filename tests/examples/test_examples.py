"""The programs of `examples/` run, and the pages of docs/ show them as they are."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from rlflow import zoo
from rlflow.cost.models import COST_MODELS
from rlflow.optimise.methods import METHODS
from rlflow.runtime.runtimes import runtime_names

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SAYS = {
    "faster_ort_model.py": "The logits differ by",
    "own_cost_model.py": "Method greedy: 3 substitutions",
    "own_method.py": "Method first-improvement: 3 substitutions",
    "own_operator.py": "Softsign is known: 96 FLOPs",
    "own_rules.py": "Method greedy: 1 substitution",
    "own_runtime.py": "computes what ONNX Runtime computes",
    "own_zoo_model.py": "Method greedy: ",
    "rules_in_onnxscript.py": "3 operators, then 2: MatMul, Relu",
}
"""What each program prints, among other things."""
NEEDS = {"faster_ort_model.py": "optimum"}
"""What some of them need that CI has not."""
LEARNS = {
    "learn_with_sb3.py": ("sb3_contrib", r"MaskablePPO saves ([\d.]+) % of the price"),
    "learn_with_torch.py": ("torch", r"update 14: an episode saves ([\d.]+) % of the price"),
    "learn_with_torchrl.py": ("torchrl", r"update 9: an episode saves about ([\d.]+) %"),
    "rollouts_for_minari.py": ("minari", r"the first saves ([\d.]+) %"),
}
"""Programs that rewrite tiny_transpose in an environment: what each needs, and how it says what it saves."""
RANDOM_PERCENT, BEST_PERCENT = 46.0, 85.342
"""Drawn actions save about as much in at most eight steps; equality saturation proves that nothing saves more."""
SHOWN = re.compile(r"^`examples/(\S+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(program: Path, folder: Path) -> str:
    """What the program prints when it is run in the folder."""
    done = subprocess.run([sys.executable, str(program)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_program_is_known() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*SAYS, *LEARNS}


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNS)
def test_an_agent_of_at_most_sixty_lines_learns_to_save(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed, says = LEARNS[name]
    if find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    assert len((EXAMPLES / name).read_text().splitlines()) <= 60
    told = re.search(says, run(EXAMPLES / name, tmp_path))
    assert told is not None
    assert RANDOM_PERCENT < 0.8 * BEST_PERCENT < float(told[1]) < 1.05 * BEST_PERCENT


@pytest.mark.slow
@pytest.mark.parametrize("name", SAYS)
def test_a_program_does_what_it_says_and_writes_nothing(name: str, tmp_path: Path) -> None:
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    assert SAYS[name] in run(EXAMPLES / name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_stage_runs_and_writes_what_it_declares(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "own_stage", tmp_path / "project")
    run(Path("pipelines/count_matches.py"), tmp_path / "project")
    metrics = json.loads((tmp_path / "project/data/results/count_matches/metrics.json").read_text())
    assert metrics["tiny_chain"]["associate-weights"] == 3


def test_pages_show_the_files_as_they_are() -> None:
    """All programs, and of the stage what a person writes."""
    pages = [(ROOT / "docs" / name).read_text() for name in ("extending.md", "integrations.md")]
    shown = dict(example for page in pages for example in SHOWN.findall(page))
    assert set(SAYS) < set(shown)
    assert {name for name in shown if name.startswith("own_stage/")} == {
        "own_stage/pipelines/count_matches.py",
        "own_stage/dvc.yaml",
        "own_stage/conf/config.yaml",
    }
    for name, text in shown.items():
        assert text == (EXAMPLES / name).read_text(), f"a page shows another examples/{name}"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples as a package with the entry points that their docstrings tell."""
    metadata = tmp_path / "own_things-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: own-things\nVersion: 1.0\n")
    lines = []
    for path in EXAMPLES.glob("*.py"):
        told = re.findall(r'^    \[project.entry-points."(.+)"\]\n    (\S+) = "(.+)"$', path.read_text(), re.MULTILINE)
        lines += [line for group, name, target in told for line in (f"[{group}]", f"{name} = {target}")]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    for folder in (tmp_path, EXAMPLES):
        monkeypatch.syspath_prepend(os.fspath(folder))


def test_what_the_docstrings_announce_is_found(installed: None) -> None:
    assert METHODS.get("first-improvement").__name__ == "FirstImprovement"
    assert COST_MODELS.get("traffic").__name__ == "traffic"
    assert "interpreter" in runtime_names()
    model = zoo.build("gated", width=8)
    assert model.graph.initializer[0].dims[1] == 8
    assert zoo.describe("gated").summary.startswith("Gated perceptron")
