"""Progress is shown to a person alone, and never on standard output."""

import pytest

from rlflow.cli.progress import progress_bar


def test_nothing_is_written_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("search") as report:
        report(0.5, "halfway")
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_title_and_state_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_bar("search") as report:
        report(0.5, "halfway")
    output, error = capsys.readouterr()
    assert output == ""
    assert "search" in error
    assert "halfway" in error
