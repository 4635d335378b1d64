"""A folder for temporary files: gone afterwards, and a sentence where there is none."""

import os
import tempfile
from pathlib import Path

import pytest

from rlflow.errors import RLFlowError
from rlflow.runtime.scratch import scratch_folder, without_scratch
from rlflow.runtime.session import open_session


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


def test_no_message_names_a_scratch_file() -> None:
    with scratch_folder() as folder:
        text = f"Load model from {folder}/original.onnx failed: {folder / 'original.weights'!s}, not /tmp/own.onnx"
        assert without_scratch(text) == "Load model from the model failed: the model, not /tmp/own.onnx"


def test_a_session_that_cannot_be_opened_names_a_file_of_the_user_alone(tmp_path: Path) -> None:
    with scratch_folder() as folder:
        for place, words in ((folder, "could not load the model: "), (tmp_path, f"load {tmp_path}/broken.onnx: ")):
            (place / "broken.onnx").write_bytes(b"no model")
            with pytest.raises(RLFlowError, match=words) as caught:
                open_session(place / "broken.onnx", "as_written")
            assert str(folder) not in str(caught.value)
