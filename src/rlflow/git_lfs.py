"""Git LFS pointers: the small texts that lie in place of large files until `git lfs pull` fetches these."""

from __future__ import annotations

from pathlib import Path

from rlflow.errors import InputError

_BEGINNING = b"version https://git-lfs.github.com/spec/"
_LONGEST_BYTES = 1024  # https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md


def is_pointer(path: Path) -> bool:
    """Return True for a file that is a pointer to the one that is wanted. `OSError` if it cannot be read."""
    if path.stat().st_size >= _LONGEST_BYTES:
        return False
    with path.open("rb") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING


def require_content(path: Path) -> None:
    """Raise `InputError` for a regular file that is a pointer. What cannot be read is left to those who read it."""
    try:
        found = path.is_file() and is_pointer(path)
    except OSError:
        return
    if found:
        raise InputError(f"{path} is a Git LFS pointer, not the file itself: run `git lfs pull`")
