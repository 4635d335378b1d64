"""A folder for files that another process or ONNX Runtime reads, and nobody keeps."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlflow.errors import RLFlowError


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Gone afterwards. `RLFlowError` where it cannot be made or what is written there does not fit."""
    try:
        with tempfile.TemporaryDirectory(prefix="rlflow-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except OSError as error:
        reason = error.strerror or error
        raise RLFlowError(
            f"temporary files could not be written ({reason}): free some space, or name another folder in TMPDIR"
        ) from None
