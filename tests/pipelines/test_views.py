"""What DVC shows of the experiment: metrics and plots that fit, by a real dvc, and that follow from the figures."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.checkouts import checkout_of
from support.views import write_views
from tracking.declaration import outputs_by_kind

TERMINAL = 100
PLOTS = {
    "losses of the world model",
    "errors of dreams",
    "calibration of the world model",
    "learning of the controller",
    "dream against reality by temperature",
    "savings by method",
    "latency ratios by method",
    "data/results/evaluate/rules_applied.png",
    "data/results/evaluate/states.png",
}
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def checkout(repository: Path, tmp_path: Path) -> Path:
    """A repository with the declarations of this one and what its results show, one figure of which has changed."""
    settings = [".dvc/config", ".dvc/.gitignore", "params.yaml", "dvc.yaml"]
    templates = [str(path.relative_to(repository)) for path in (repository / ".dvc/plots").iterdir()]
    views = [path for path in outputs_by_kind(repository) if path.endswith((".yaml", ".csv", ".png"))]
    folder = checkout_of(repository, [*dict.fromkeys([*settings, *templates, *views])], tmp_path)
    (folder / "data/results/controller.yaml").write_text("real_%: 123.45\n")
    return folder


def width(text: str) -> int:
    return max(map(len, text.splitlines()))


def test_views_follow_from_the_stored_figures(repository: Path, tmp_path: Path):
    """Those that are here are what the stages would write of the figures beside them, and none is missing."""
    paths = write_views(repository / "data/results", tmp_path)
    declared = [path for path in outputs_by_kind(repository) if path.endswith((".csv", ".yaml"))]
    assert {f"data/results/{path}" for path in paths} == set(declared) - {"data/code.yaml", "params.yaml"}
    differing = [p for p in paths if (tmp_path / p).read_text() != (repository / "data/results" / p).read_text()]
    assert differing == []


@pytest.mark.slow
def test_metrics_fit_a_terminal(checkout: Path, command: Command):
    """Those of every stage, with the widest values that are to be expected, and what has changed of them."""
    shown = command("dvc", "metrics", "show", cwd=checkout)
    assert width(shown.stdout) <= TERMINAL
    assert "failed" not in shown.stderr
    files = re.findall(r"^data/results/(\w+)\.yaml", shown.stdout, re.MULTILINE)
    assert files == ["rules", "rollouts", "world_model", "controller", "evaluation", "sweep"]

    changed = command("dvc", "metrics", "diff", cwd=checkout).stdout
    assert width(changed) <= TERMINAL
    assert "real_%" in changed
    assert "saved_%" not in changed, "which is as it was"


def test_experiments_fit_a_terminal(checkout: Path, command: Command, repository: Path):
    """By the command of the documents, which leaves out what is the same in all of them."""
    documents = [(repository / name).read_text() for name in ("README.md", "docs/configuration.md")]
    [drop] = {drop for text in documents for drop in re.findall(r"dvc exp show --only-changed --drop '(.*)'", text)}
    arguments = ("dvc", "exp", "show", "--no-pager", "--only-changed", "--drop", drop)
    shown = command(*arguments, cwd=checkout, COLUMNS=str(TERMINAL)).stdout
    assert width(shown) <= TERMINAL
    assert "real_%" in shown
    assert "123.45" in shown
    assert "…" not in shown, "nothing is cut off"


@pytest.mark.slow
def test_plots_are_drawn_from_data(checkout: Path, command: Command):
    """Each has the points of its file for each experiment, in a picture of which no field is left open."""
    shown = json.loads(command("dvc", "plots", "diff", "HEAD", "--json", cwd=checkout).stdout)
    assert not shown.get("errors")
    assert set(shown["data"]) == PLOTS
    vega = {name: plot[0] for name, plot in shown["data"].items() if plot[0]["type"] == "vega"}
    assert len(vega) >= 6
    for name, plot in vega.items():
        assert set(plot["revisions"]) == {"HEAD", "workspace"}, name

    command("dvc", "plots", "show", "--out", "plots", cwd=checkout)
    specifications = drawn(checkout / "plots/index.html")
    assert {spec["title"]["text"] for spec in specifications} == set(vega)
    for spec in specifications:
        assert "<DVC_METRIC" not in json.dumps(spec)
        assert fields(spec["spec"] | spec["facet"]) <= set(spec["data"]["values"][0]) | {"low", "high", "setting"}


def drawn(page: Path) -> list[dict]:
    """The specifications of all pictures of a page."""
    text = page.read_text()
    starts = [found.end() for found in re.finditer(r"var spec = ", text)]
    return [json.JSONDecoder().raw_decode(text[start:])[0] for start in starts]


def fields(part: object) -> set[str]:
    """The columns that a specification names."""
    if isinstance(part, list):
        return set().union(*map(fields, part))
    if not isinstance(part, dict):
        return set()
    own = {part["field"]} if "field" in part else set()
    return own.union(*map(fields, part.values()))
