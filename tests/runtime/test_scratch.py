"""A folder for temporary files: gone afterwards, and a sentence where there is none."""

import os
import tempfile
from pathlib import Path

import pytest

from rlflow.errors import RLFlowError
from rlflow.runtime.scratch import scratch_folder, without_scratch


def test_it_is_gone_afterwards_with_all_that_is_in_it() -> None:
    with scratch_folder() as folder:
        (folder / "inner").mkdir()
        (folder / "inner/file").write_text("text")
    assert not folder.exists()


def test_it_is_gone_after_an_error_which_passes_through() -> None:
    with pytest.raises(ZeroDivisionError), scratch_folder() as folder:
        raise ZeroDivisionError(folder)
    assert not folder.exists()


def test_where_nothing_can_be_made_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(RLFlowError, match=f"{os.strerror(2)}.*free some space, or name another folder in TMPDIR"):
        with scratch_folder():
            pytest.fail("there is no such folder")


def test_no_message_names_it() -> None:
    """A file of the user's keeps its name, also beside a scratch folder."""
    with scratch_folder() as folder:
        beside = folder.parent / "user.onnx"
        message = f"Load model from {folder / 'candidate.onnx'} failed: {folder}/w.bin, not {beside}"
        assert without_scratch(message) == f"Load model from the model failed: the model, not {beside}"
