"""The entry point: an expected error is one sentence and an exit code, never a traceback."""

import pytest


def test_an_unknown_command_is_refused(rlflow) -> None:
    code, out, err = rlflow("optimize")
    assert (code, out) == (2, "")
    assert "optimize" in err


@pytest.mark.parametrize("command", ["optimise", "equivalence", "replay", "zoo", "rules", "check-results"])
def test_every_command_tells_its_options(rlflow, command) -> None:
    code, out, err = rlflow(command, "--help")
    assert (code, err) == (0, "")
    assert command in out
