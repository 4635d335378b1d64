"""A generation that was killed goes on where it ended, and only where nothing has changed since."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.generation import QUICK, SMALL_LIBRARY

from rlflow.rules.library import load
from rlflow.rules.verification.verify import VerificationConfig
from rlflow.synthesis import generate as generation
from rlflow.synthesis.code import code_files
from rlflow.synthesis.generate import GeneratorConfig, LibraryConfig, build_library, resumed, write_library

PROGRAM = """
import sys
from pathlib import Path
from support.generation import SMALL_LIBRARY
from rlflow.synthesis.generate import write_library
if __name__ == "__main__":
    write_library(Path(sys.argv[1]), SMALL_LIBRARY)
"""
"""In a file of its own: processes of families read it again."""


@pytest.fixture
def no_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("a family is enumerated")

    monkeypatch.setattr(generation, "enumerate_pairs", refuse)


@pytest.mark.slow
def test_a_killed_generation_goes_on(tmp_path: Path) -> None:
    """It is killed for good, with its processes, while the second family is made; the first one is not made again, as
    the time that it took is the one that was kept, to the last digit."""
    path, whole = tmp_path / "library.jsonl", tmp_path / "whole.jsonl"
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    search = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    process = subprocess.Popen(
        [sys.executable, program, path], env=os.environ | {"PYTHONPATH": search}, start_new_session=True
    )
    until = time.monotonic() + 120
    while not (found := list(tmp_path.glob("library.generating/algebra-*.json"))) and time.monotonic() < until:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not path.exists(), "the generation was quicker than its end"
    (kept,) = found
    cpu_s = json.loads(kept.read_text())["cpu_s"]

    report = write_library(path, SMALL_LIBRARY)
    assert report.families["algebra"].cpu_s == cpu_s
    write_library(whole, SMALL_LIBRARY)
    assert path.read_bytes() == whole.read_bytes()
    assert {rule.family for rule in load(path).rules} == {"algebra", "transpose-concat"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["library.jsonl", "program.py", "whole.jsonl"]


def test_what_is_kept_is_not_made_again(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    first = resumed(QUICK, tmp_path)
    request.getfixturevalue("no_enumeration")
    again = resumed(QUICK, tmp_path)
    assert again.to_json() == first.to_json()
    assert [rule.to_json() for rule in again.rules] == [rule.to_json() for rule in first.rules]
    assert again.rules


@pytest.mark.parametrize(
    "changed",
    [
        replace(QUICK, seed=1),
        replace(QUICK, trials=9),
        replace(QUICK, max_operators=2),
        replace(QUICK, verification=VerificationConfig(shapes=17)),
        replace(QUICK, family=replace(QUICK.family, dimensions={"m": 2, "k": 4, "n": 3})),
    ],
    ids=["seed", "trials", "operators", "verification", "family"],
)
def test_another_configuration_takes_nothing_of_it(
    tmp_path: Path, changed: GeneratorConfig, request: pytest.FixtureRequest
) -> None:
    resumed(QUICK, tmp_path)
    request.getfixturevalue("no_enumeration")
    with pytest.raises(AssertionError, match="enumerated"):
        resumed(changed, tmp_path)


def test_the_name_depends_on_the_code() -> None:
    """Otherwise a file that older code has made would be taken for one of this code, without a word."""
    files = code_files()
    assert {path.parts[0] for path in files} == {"egraph", "ir", "onnx_io", "ops", "rules", "runtime", "synthesis"}
    assert {Path("synthesis/generate.py"), Path("ops/registry.py")} <= set(files)


@pytest.mark.parametrize("damage", [lambda b: b[:-20], lambda b: b"\xff\x00", lambda b: b""])
def test_what_is_damaged_is_made_again(tmp_path: Path, damage: object, caplog: pytest.LogCaptureFixture) -> None:
    first = resumed(QUICK, tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with caplog.at_level(logging.WARNING):
        again = resumed(QUICK, tmp_path)
    assert "it is made again" in caplog.text
    assert [rule.to_json() for rule in again.rules] == [rule.to_json() for rule in first.rules]
    caplog.clear()
    resumed(QUICK, tmp_path)
    assert not caplog.text


@pytest.mark.slow
def test_declared_rules_are_kept_with_their_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = generation.declared_rules([])[:5]
    monkeypatch.setattr(generation, "declared_rules", lambda families: few)
    first, _ = build_library(LibraryConfig(families=()), tmp_path)
    monkeypatch.setattr(generation, "certified", lambda *arguments: pytest.fail("a rule is verified again"))
    again, _ = build_library(LibraryConfig(families=()), tmp_path)
    assert [rule.to_json() for rule in again.rules] == [rule.to_json() for rule in first.rules]
    assert len(again.rules) == 5
