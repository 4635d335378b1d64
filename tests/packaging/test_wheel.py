"""The wheel, as it reaches whoever types `pip install rlflow`: built, installed into an empty environment, and used.

Here alone the library runs without the checkout around it and without the extras, which every other test has at hand.
Wants the package index that pip is configured with.
"""

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from rlflow.extras import EXTRAS

ROOT = Path(__file__).parents[2]
CONTROLLER = ("controller.onnx", "controller.json", "controller.safetensors")
SHIPPED_POLICY = (
    *("policy.json", "encoder.onnx", "world_model.json", "world_model.safetensors", "data_sheet.md"),
    *CONTROLLER,
)
NOT_INSTALLED = {
    "import rlflow.nn": ("learn", "rlflow.nn"),
    "import rlflow.world_model": ("learn", "rlflow.world_model"),
    "import rlflow.agents.graph_level": ("learn", "rlflow.agents.graph_level"),
    "import rlflow.agents.candidates": ("learn", "rlflow.agents.candidates"),
    "import rlflow.environments": ("learn", "rlflow.environments"),
    "import rlflow.show.picture_file": ("plots", "a picture"),
    "import rlflow.show.box_picture": ("plots", "a picture"),
    "import rlflow.show.rule_picture": ("plots", "a picture"),
}
"""What cannot be imported without an extra: the extra, and what its sentence says needs it."""

_EVERY = 60
"""Of the shipped rules, every so many is verified; `make test MARK=exhaustive` verifies all."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy, since building leaves folders behind."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    build = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(target), str(source))
    subprocess.run([sys.executable, "-m", "pip", *build], check=True)
    (built,) = target.glob("*.whl")
    return built


class Installation:
    """A virtual environment with the wheel and what it depends on, used from an empty folder."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self._programs, self.folder = folder / "venv" / "bin", folder / "work"
        self.folder.mkdir()
        venv.create(folder / "venv", with_pip=False)
        target = ("--python", str(self._programs / "python"), "install", "--quiet", "--no-compile", str(wheel))
        subprocess.run([sys.executable, "-m", "pip", *target], check=True)

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        environment = kept | {"XDG_CACHE_HOME": str(self.folder / "cache")}
        command = [str(self._programs / program), *arguments]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)

    def refusal(self, program: str, *arguments: str) -> str:
        """The sentence with which a command ends that is given what it cannot use."""
        done = self.run(program, *arguments)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr.strip()


@pytest.fixture(scope="module")
def installation(tmp_path_factory, wheel) -> Installation:
    return Installation(tmp_path_factory.mktemp("installation"), wheel)


def test_the_wheel_holds_the_library_and_nothing_else(wheel):
    with ZipFile(wheel) as archive:
        files = set(archive.namelist())
    shipped = {p for p in files if not p.partition("/")[0].endswith(".dist-info")}
    code = {str(p.relative_to(ROOT / "src")) for p in (ROOT / "src").rglob("*.py")}
    data = {"rlflow/py.typed", "rlflow/rules/library.jsonl"}
    data |= {f"rlflow/cost/predicted/price_model.{suffix}" for suffix in ("json", "onnx")}
    data |= {f"rlflow/agents/shipped/{name}" for name in SHIPPED_POLICY}
    data |= {
        f"rlflow/show/{name}" for name in ("page.html", "page.css", "elements.js", "model_page.js", "rules_page.js")
    }
    assert code | data <= shipped
    assert {p.suffix for p in map(Path, shipped)} <= {
        ".py",
        ".typed",
        ".json",
        ".jsonl",
        ".onnx",
        ".safetensors",
        ".md",
        ".html",
        ".css",
        ".js",
    }
    assert not [p for p in files if "test" in p]


def test_it_works_where_nothing_else_is_installed(installation):
    """One installation for all that follows: making it takes longest."""
    listed = json.loads(installation.run("python", "-c", DISTRIBUTIONS).stdout)
    extra_modules = {module for modules in EXTRAS.values() for module in modules}
    assert {"numpy", "onnx", "rlflow"} <= set(listed)
    assert not extra_modules & set(listed), "the environment is not as empty as the test believes"

    built = installation.run("rlflow", "zoo", "build", "tiny_chain", "-o", "in.onnx")
    assert built.returncode == 0, built.stderr
    optimised = installation.run("rlflow", "optimise", "in.onnx", "-o", "out.onnx", "--budget", "20s", "--json")
    assert optimised.returncode == 0, optimised.stderr
    report = json.loads(optimised.stdout)
    assert report["nodes_after"] < report["nodes_before"], "nothing was optimised"
    assert report["equivalence"]["equivalent"]
    assert (installation.folder / "out.onnx").exists()

    shipped = (ROOT / "src/rlflow/rules/library.jsonl").read_text().splitlines()
    assert len(installation.run("rlflow", "rules", "list").stdout.splitlines()) >= len(shipped) > 700
    (installation.folder / "some.jsonl").write_text("\n".join(shipped[::_EVERY]) + "\n")
    verified = installation.run("rlflow", "rules", "verify", "--library", "some.jsonl", "--json")
    assert verified.returncode == 0, verified.stderr
    assert json.loads(verified.stdout)["rules_verified"] == len(shipped[::_EVERY])

    for statement, (extra, needed_by) in NOT_INSTALLED.items():
        done = installation.run("python", "-c", statement)
        sentence = done.stderr.strip().splitlines()[-1]
        assert sentence.startswith(f"rlflow.extras.MissingExtraError: {needed_by} needs {EXTRAS[extra][0]}"), statement
        assert sentence.endswith(f"not installed: pip install 'rlflow[{extra}]'"), statement

    by_policy = ("optimise", "in.onnx", "-o", "out.onnx", "--method", "rlflow")
    assert installation.run("rlflow", *by_policy, "--budget", "20s").returncode == 0
    (installation.folder / "data/policies/bert").mkdir(parents=True)  # as of the paper's formulation
    for learned in (("train", "in.onnx", "--policy-out", "policy"), (*by_policy, "--trained-on", "bert")):
        assert installation.refusal("rlflow", *learned).endswith("pip install 'rlflow[learn]'")
    (rule, *_) = installation.run("rlflow", "rules", "list").stdout.split()
    drawn = installation.refusal("rlflow", "rules", "show", rule, "--picture", "rule.svg")
    assert drawn == "rlflow: a picture needs matplotlib, which is not installed: pip install 'rlflow[plots]'"
    assert not (installation.folder / "rule.svg").exists()
    assert installation.refusal("rlflow", "show", "in.onnx", "-o", "model.svg") == drawn
    assert installation.run("rlflow", "show", "in.onnx", "--after", "out.onnx", "-o", "model.dot").returncode == 0


DISTRIBUTIONS = """
import json
from importlib.metadata import packages_distributions
print(json.dumps(list(packages_distributions())))
"""
