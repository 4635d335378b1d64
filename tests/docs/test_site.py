"""The documentation as a site: it builds without a warning, is whole, and its tutorials run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import rlflow
from rlflow.cli.main import COMMANDS
from rlflow.rules.library import load

DOCS = Path(__file__).parents[2] / "docs"


def test_the_references_are_whole(site: Path) -> None:
    """Every public name, every command and every rule has its entry."""
    python = (site / "reference/python.html").read_text()
    described = set(re.findall(r'id="(rlflow\.[\w.]+)"', python))
    homes = {getattr(rlflow, name) for name in rlflow.__all__}
    wanted = {f"{home.__module__}.{home.__qualname__}" for home in homes}
    assert {name.rpartition(".")[2] for name in wanted} <= {name.rpartition(".")[2] for name in described}
    commands = (site / "reference/commands.html").read_text()
    assert all(f"rlflow {name}" in commands for name in COMMANDS)
    rules = (site / "reference/all_rules.html").read_text()
    assert all(rule.id in rules for rule in load().rules)


def test_the_first_page_has_a_rule_a_graph_and_a_chart(site: Path) -> None:
    pictures = re.findall(r'<img[^>]*src="([^"]+)"', (site / "index.html").read_text())
    assert [Path(picture).stem for picture in pictures] == ["rule", "report", "curves"]
    assert all((site / picture).stat().st_size > 1000 for picture in pictures)


def test_no_page_loads_anything_from_a_network(site: Path) -> None:
    """Links may lead out of the site; scripts, styles and pictures come from it, and all pages have some."""
    loaded = re.compile(
        r"""<(?:script|img|iframe)[^>]*?\ssrc="([^"]+)"|<link[^>]*?rel="stylesheet"[^>]*?href="([^"]+)\""""
    )
    for path in site.rglob("*.html"):
        if path.name not in ("all_rules.html", "404.html"):
            addresses = ["".join(found) for found in loaded.findall(path.read_text())]
            assert addresses
            assert [address for address in addresses if "//" in address] == []


def test_the_tutorial_of_a_model_runs(tmp_path: Path) -> None:
    """Its commands and its program, one after another in one folder; whatever timing says, both files are written.

    The doctor's exit code is 1 where threads do harm, as they do where other programs run.
    """
    page = (DOCS / "tutorials/faster_model.md").read_text()
    blocks = re.findall(r"^```(bash|python)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 10
    for kind, text in blocks:
        command = ["bash", "-ec", text] if kind == "bash" else [sys.executable, "-c", text]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode in ((0, 1) if text.startswith("rlflow doctor") else (0,)), done.stderr
    written = {"model.onnx", "faster.onnx", "one.onnx", "page.html", "any_faster.onnx", "sized.onnx.dispatch.json"}
    assert written <= {path.name for path in tmp_path.iterdir()}


def test_the_notebook_runs_as_it_is_stored(tmp_path: Path) -> None:
    """In a kernel of Jupyter, afresh. What a network learns may differ by processor: it beats what is drawn by half."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(DOCS / "tutorials/train_agent.ipynb", as_version=4)
    stored = [cell.outputs[-1]["data"]["text/plain"] for cell in notebook.cells if cell.cell_type == "code"]
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute(cwd=str(tmp_path))
    shown = [cell.outputs[-1]["data"]["text/plain"] for cell in notebook.cells if cell.cell_type == "code"]
    assert shown[:2] == stored[:2]
    drawn, optimum, learned = (float(text) for text in re.findall(r"([\d.]+) %", " ".join(shown[1:])))
    assert 1.5 * drawn < learned <= round(optimum, 1)
