"""`rlflow passes`: list, apply, search, replay, and refusals that write nothing."""

from pathlib import Path

import pytest
from support.toy_compiler import announce
from typer.testing import CliRunner

from rlflow.cli.passes import app
from rlflow.errors import EquivalenceError, InputError


@pytest.fixture(autouse=True)
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announce(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


def said(*arguments: object) -> str:
    """What the command prints; what it raises is raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_passes_and_programs_are_listed() -> None:
    assert "  1 swap" in said("list", "-b", "toy")
    assert "by default default" in said("list", "-b", "toy")
    assert said("list", "-b", "toy", "--sources").split() == ["c", "cc", "c", "cab", "a", "abab"]


def test_passes_are_applied_one_after_another(tmp_path: Path) -> None:
    output = said("apply", "cc", "expand", "refuse", "swap", "-b", "toy", "-o", tmp_path / "out")
    assert "4 operations" in output
    assert "it never works" in output
    assert (tmp_path / "out").read_text() == "abab"


def test_what_a_search_finds_can_be_replayed(tmp_path: Path) -> None:
    found = said("search", "ccab", "-b", "toy", "--method", "fixpoint", "--record", tmp_path / "found.json")
    assert "4 operations, 0 after" in found
    assert "4 operations, 0 after them" in said("replay", tmp_path / "found.json", "-o", tmp_path / "out")
    assert (tmp_path / "out").read_text() == ""


def test_a_program_that_computes_something_else_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(EquivalenceError, match="is another one, and was not written"):
        said("apply", "cc", "corrupt", "-b", "toy", "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(InputError, match="there is no pass backend 'gcc'"):
        said("list", "-b", "gcc")
    with pytest.raises(InputError, match="is no word"):
        said("search", "xyz", "-b", "toy")
    with pytest.raises(InputError, match="there is no folder"):
        said("apply", "cc", "swap", "-b", "toy", "-o", "/nowhere/at/all")
