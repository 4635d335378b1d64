"""The action does its work: its steps are run as GitHub runs them, in a repository with two models.

GitHub itself is out of reach. Its command line, `gh`, is a script that keeps comments in a folder and says them again.
"""

import os
import re
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.checkouts import checkout_of, package_files
from support.onnx_models import save
from support.repository import REPOSITORY

ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text())
STEPS = {step["id"]: step for step in ACTION["runs"]["steps"]}
FAST = "--method greedy --threads 1 --budget 20s"
GH = """#!/usr/bin/env bash
set -eu
test "$GH_TOKEN" = secret
body= method=GET
for argument; do
  case "$argument" in
    PATCH | POST) method=$argument ;;
    repos/*) place=$argument ;;
    body=@*) body=${argument#body=@} ;;
  esac
done
test "$1" = api
case "$method $place" in
  'GET repos/o/r/issues/7/comments') cd "$COMMENTS"; ls ;;
  'POST repos/o/r/issues/7/comments') cp "$body" "$COMMENTS/41" ;;
  'PATCH repos/o/r/issues/comments/41') test -f "$COMMENTS/41"; cp "$body" "$COMMENTS/41" ;;
  *) exit 1 ;;
esac
"""


@dataclass
class Runner:
    """A machine that runs the steps of the action in a checkout; `given` are inputs that a workflow gives."""

    folder: Path
    action: Path = REPOSITORY
    given: dict[str, str] = field(default_factory=lambda: {"arguments": FAST, "token": "secret"})

    def __post_init__(self) -> None:
        for name in ("checkout", "temp", "comments", "bin"):
            (self.folder / name).mkdir()
        gh = self.folder / "bin/gh"
        gh.write_text(GH)
        gh.chmod(0o755)

    def run(self, step: str, programs: Path = Path(sys.executable).parent) -> tuple[int, str]:
        """Run a step as `shell: bash` says, with the programs of an environment before all others."""
        assert STEPS[step]["shell"] == "bash"
        script = self.folder / "script.sh"
        script.write_text(STEPS[step]["run"])
        environment = {
            "PATH": os.pathsep.join([str(self.folder / "bin"), str(programs), os.environ["PATH"]]),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "GITHUB_ACTION_PATH": str(self.action),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "COMMENTS": str(self.folder / "comments"),
        }
        own = {name: self.said(value) for name, value in STEPS[step].get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.folder / "checkout",
            env={**os.environ, **environment, **own},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr

    def said(self, text: str) -> str:
        """Put values in place of expressions."""
        inputs = {name: declared["default"] for name, declared in ACTION["inputs"].items()} | self.given
        values = {f"inputs.{name}": value for name, value in inputs.items()}
        values |= {"runner.temp": str(self.folder / "temp"), "github.event.pull_request.number": "7"}
        return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: values[found[1]], text)

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """Of a repository with a model that gets several times as fast, one that does not, and one that is not tracked."""
    runner = Runner(tmp_path)
    checkout = tmp_path / "checkout"
    (checkout / "deep").mkdir()
    save(checkout / "chain.onnx", "tiny_chain")
    save(checkout / "deep/mlp 1.onnx", "mlp")
    for command in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *command], cwd=checkout, check=True)
    save(checkout / "untracked.onnx", "tiny_chain")
    return runner


def test_scripts_hold_no_text_from_outside() -> None:
    """Names and titles are strangers' texts, which an expression would make a part of a script."""
    assert not any("${{" in step["run"] for step in STEPS.values())
    assert all(step["shell"] == "bash" for step in STEPS.values())
    assert ACTION["runs"]["using"] == "composite"


def test_comments_are_made_on_pull_requests_whatever_became_of_the_models() -> None:
    condition = STEPS["comment"]["if"]
    assert {"!cancelled()", "github.event_name == 'pull_request'", "inputs.token != ''"} == set(
        condition.removeprefix("${{ ").removesuffix(" }}").split(" && ")
    )


@pytest.mark.slow
def test_models_are_optimised_and_the_table_is_a_comment(runner: Runner) -> None:
    checkout = runner.folder / "checkout"
    untracked = (checkout / "untracked.onnx").read_bytes()
    code, said = runner.run("optimise")
    assert code == 0, said
    assert runner.read("output") == "replaced=true\n"
    assert (checkout / "untracked.onnx").read_bytes() == untracked
    table = runner.read("temp/rlflow.md")
    assert table.startswith("### RLFlow: 1 of 2 models optimised\n")
    assert "| `deep/mlp 1.onnx` | as it was: " in table
    assert runner.read("summary.md") == table
    assert runner.run("comment") == (0, "")
    comment = runner.read("comments/41")
    assert comment == f"<!-- rlflow -->\n{table}"
    code, said = runner.run("optimise")
    assert code == 0, said
    assert runner.read("output") == "replaced=true\nreplaced=false\n"
    assert runner.run("comment") == (0, "")
    assert runner.read("comments/41") == f"<!-- rlflow -->\n{runner.read('temp/rlflow.md')}" != comment


@pytest.mark.slow
def test_models_are_chosen_by_patterns_of_git(runner: Runner) -> None:
    """And options are those of the command: nothing is written here."""
    runner.given |= {"models": "deep/*.onnx :!absent", "arguments": f"{FAST} --check"}
    code, said = runner.run("optimise")
    assert code == 0, said
    assert "0 of 1 models can be optimised" in said
    runner.given["models"] = "*.tflite"
    code, said = runner.run("optimise")
    assert (code, said) == (0, "::notice::RLFlow: no model is called *.tflite\n")
    assert runner.run("comment") == (0, ""), "there is nothing to say"
    assert runner.read("output") == "replaced=false\nreplaced=false\n"


@pytest.mark.slow
def test_a_step_fails_where_a_model_cannot_be_used_or_the_command_cannot_run(runner: Runner) -> None:
    """The first has a table, the second none, and no step says then that something was replaced."""
    runner.given["models"] = "broken.onnx"
    (runner.folder / "checkout/broken.onnx").write_text("no model")
    subprocess.run(["git", "add", "broken.onnx"], cwd=runner.folder / "checkout", check=True)
    code, said = runner.run("optimise")
    assert code == 2, said
    assert "| `broken.onnx` | cannot be used: " in runner.read("summary.md")
    runner.given["arguments"] = "--budget soon"
    code, said = runner.run("optimise")
    assert code == 2
    assert "'soon' is not a budget" in said
    assert runner.read("output") == "replaced=false\n"
    assert runner.run("comment") == (0, ""), "there is nothing to say"


@pytest.mark.slow
def test_it_installs_what_it_runs(runner: Runner, tmp_path: Path) -> None:
    """Wants the package index that pip is configured with."""
    runner.action = checkout_of(REPOSITORY, package_files(REPOSITORY), tmp_path / "action")
    venv.create(tmp_path / "python", with_pip=True)
    programs = tmp_path / "python/bin"
    code, said = runner.run("install", programs)
    assert code == 0, said
    done = subprocess.run([programs / "rlflow", "optimise-all", "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_declared_outputs_are_those_of_the_step() -> None:
    outputs: dict[str, Any] = ACTION["outputs"]
    assert outputs["replaced"]["value"] == "${{ steps.optimise.outputs.replaced }}"
    assert "replaced=" in STEPS["optimise"]["run"]
