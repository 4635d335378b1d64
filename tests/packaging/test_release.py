"""A release says the same of itself everywhere, and `make release` makes all of it from a checkout."""

import json
import re
import subprocess
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from support.checkouts import checkout_of, package_files

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["cff-version"], citation["title"]) == ("1.2.0", "RLFlow")
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])


def test_the_supported_versions_are_those_of_the_package() -> None:
    page = (ROOT / "docs/releases.md").read_text()
    told = {
        name: (old, new)
        for name, old, new in re.findall(r"^\| ([\w ]+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE)
    }
    declared = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r"Python :: 3\.", c)]
    assert told.pop("Python") == (declared[0], declared[-1])
    assert PROJECT["requires-python"] == f">={declared[0]}"
    bounds = dict(re.findall(r"^([\w-]+)>=([\d.]+)", "\n".join(PROJECT["dependencies"]), re.MULTILINE))
    assert {name.lower().replace(" ", ""): old for name, (old, _) in told.items()} == {
        name: bounds[name] for name in ("onnx", "onnxruntime")
    }


@pytest.mark.parametrize("path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem)
def test_forms_of_issues_are_as_github_reads_them(path: Path) -> None:
    """A form that is not is left out by GitHub without a word."""
    form = yaml.safe_load(path.read_text())
    if path.stem == "config":
        assert set(form) == {"blank_issues_enabled"}
        return
    assert {"name", "description", "body"} <= set(form)
    ids = [field["id"] for field in form["body"]]
    assert len(set(ids)) == len(ids) > 0
    assert all(field["type"] == "textarea" and field["attributes"]["label"] for field in form["body"])


@pytest.mark.slow
def test_a_release_is_made_by_one_command(tmp_path: Path) -> None:
    """Wants the package index that pip is configured with. The list names what the package asks for, and versions."""
    checkout_of(ROOT, [*package_files(ROOT), "Makefile"], tmp_path)
    subprocess.run(["make", "release"], cwd=tmp_path, check=True)
    made = {path.name: path for path in (tmp_path / "dist").iterdir()}
    name = f"rlflow-{PROJECT['version']}"
    assert set(made) == {f"{name}-py3-none-any.whl", f"{name}.tar.gz", "rlflow.cdx.json", "SHA256SUMS"}
    listed = json.loads(made["rlflow.cdx.json"].read_text())
    components = {re.sub("[-_.]+", "-", part["name"].lower()): part["version"] for part in listed["components"]}
    assert {re.split("[<>=]", needed)[0] for needed in PROJECT["dependencies"]} <= set(components)
    assert listed["metadata"]["component"]["version"] == PROJECT["version"]
    for line in made.pop("SHA256SUMS").read_text().splitlines():
        digest, _, file = line.partition("  ")
        assert sha256(made.pop(file).read_bytes()).hexdigest() == digest
    assert made == {}
