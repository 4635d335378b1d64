"""Files and folders that are written whole or not at all.

    with written_whole(path) as draft:
        draft.write_text(text)

The draft lies in a hidden folder of its own beside `path` and bears its name, so that writers that go by a suffix are
content, and two processes that write the same file do not meet. It takes the place of `path` in one step when the
block ends, and is gone if the block raises: a reader sees the old file or the new one, never half of one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield the path of a draft that becomes `path` when the block ends without an error; folders above it are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".draft.", ignore_cleanup_errors=True) as folder:
        draft = Path(folder, path.name)
        yield draft
        if path.is_dir():
            os.replace(path, Path(folder, f"{path.name}.old"))
        os.replace(draft, path)
