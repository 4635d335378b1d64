"""A folder is described by one JSON file, and what is wrong with it is one line."""

from pathlib import Path

import pytest

from rlflow.described import Described
from rlflow.errors import InputError

TOASTER = Described("toaster", "toaster", "buy one", indent=1)


def test_a_description_is_what_was_described(tmp_path: Path) -> None:
    TOASTER.describe({"slots": 2}, tmp_path)
    assert TOASTER.description(tmp_path) == {"slots": 2}
    assert (tmp_path / "toaster.json").read_text() == '{\n "slots": 2\n}\n'


def test_what_is_no_number_is_neither_written_nor_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        TOASTER.describe({"slots": float("inf")}, tmp_path)
    assert not (tmp_path / "toaster.json").exists()
    (tmp_path / "toaster.json").write_text('{"slots": NaN}')
    with pytest.raises(ValueError, match="NaN is no number of JSON"):
        TOASTER.description(tmp_path)


@pytest.mark.parametrize("content", [None, "", "[]", '{"slots": Infinity}', "{}"])
def test_what_is_broken_is_one_line(tmp_path: Path, content: str | None) -> None:
    """No file, no JSON, no mapping, no number, and nothing under the name that is wanted."""
    if content is not None:
        (tmp_path / "toaster.json").write_text(content)
    with pytest.raises(InputError, match=r"^toaster: .* cannot be read \(.+\); buy one$"), TOASTER.reading(tmp_path):
        TOASTER.description(tmp_path)["slots"]


def test_other_errors_are_left_alone(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), TOASTER.reading(tmp_path):
        _ = 1 / 0
