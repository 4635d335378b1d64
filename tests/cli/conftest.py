"""The command line as a person meets it."""

import pytest

from rlflow.cli import main


@pytest.fixture
def rlflow(monkeypatch, capsys, tmp_path):
    """Run a command; returns (exit code, standard output, standard error). Prices are cached in a fresh folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["rlflow", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
