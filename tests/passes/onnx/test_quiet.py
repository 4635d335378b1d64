"""What libraries say stays inside, and the settings of logs and warnings are the caller's again."""

from __future__ import annotations

import logging
import sys
import warnings

import pytest

from rlflow.passes.onnx.quiet import quiet


def test_nothing_is_heard(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    """Every channel is used once inside; outside, each of them is heard, so that the silence is not the test's."""
    with quiet():
        _speak()
    assert capfd.readouterr() == ("", "")
    assert not caplog.records

    with pytest.warns(UserWarning, match="look"):
        _speak()
    assert capfd.readouterr() == ("out\n", "err\n")
    assert len(caplog.records) == 1


def test_levels_come_back_after_an_error() -> None:
    logger = logging.getLogger("onnxslim")
    before = logger.level

    with pytest.raises(KeyError), quiet():
        raise KeyError

    assert logger.level == before


def _speak() -> None:
    sys.stdout.write("out\n")
    sys.stderr.write("err\n")
    logging.getLogger("onnxscript").error("log")
    warnings.warn("look", UserWarning, stacklevel=2)
