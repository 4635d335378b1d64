"""A pointer of Git LFS is told from the file in whose place it lies."""

from pathlib import Path

import pytest

from rlflow.errors import InputError
from rlflow.git_lfs import is_pointer, require_content

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.mark.parametrize(
    ("content", "pointer"),
    [(POINTER, True), (b"", False), (POINTER[:20], False), (b" " + POINTER, False), (POINTER + b"x" * 1024, False)],
)
def test_a_pointer_is_small_and_begins_as_its_format_says(tmp_path: Path, content: bytes, pointer: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert is_pointer(path) == pointer


def test_a_pointer_is_refused_and_what_is_none_is_left_to_its_readers(tmp_path: Path) -> None:
    path = tmp_path / "file"
    require_content(path)
    require_content(tmp_path)
    path.write_bytes(POINTER)
    with pytest.raises(InputError, match=r"file is a Git LFS pointer, not the file itself: run `git lfs pull`"):
        require_content(path)
