"""Temporary folders for files that another process or ONNX Runtime reads."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlflow.errors import RLFlowError

_PREFIX = "rlflow-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder that is gone afterwards; raise `RLFlowError` if it cannot be made or the files in it do not fit."""
    try:
        with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except OSError as error:
        reason = error.strerror or error
        raise RLFlowError(
            f"temporary files could not be written ({reason}): free some space, or name another folder in TMPDIR"
        ) from None


def without_scratch(text: str) -> str:
    """Return a message with "the model" for each path of a file in a scratch folder, which no user knows."""
    return re.sub(rf"{re.escape(tempfile.gettempdir())}/{_PREFIX}[\w./-]*\w", "the model", text)
