"""The command line as a person meets it."""

import pytest
from support.conformance.commands import ran


@pytest.fixture
def rlflow(monkeypatch, tmp_path):
    """Run a command; returns (exit code, standard output, standard error). Prices are cached in a fresh folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run(*arguments):
        said = ran(*map(str, arguments))
        assert said.escaped == ""
        return said.code, said.out, said.err

    return run


@pytest.fixture
def refused(rlflow, tmp_path):
    """Run a command that cannot be carried out; returns the one sentence that says why. Nothing may be left behind."""

    def run(*arguments):
        before = {path.name for path in tmp_path.iterdir()} | {"cache"}
        code, out, err = rlflow(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith("rlflow: ")
        assert err.count("\n") == 1
        assert {path.name for path in tmp_path.iterdir()} <= before
        return err

    return run
