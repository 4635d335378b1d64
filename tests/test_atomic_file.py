"""Files are written whole or not at all, whatever happens on the way."""

import stat

import pytest

from rlflow.atomic_file import written_whole


def test_the_new_file_takes_the_place_of_the_old_one(tmp_path):
    path = tmp_path / "made" / "folder" / "result.json"
    for text in ("old", "new"):
        with written_whole(path) as draft:
            draft.write_text(text)
            assert draft.name == path.name, "some writers choose the format, or append it, by the suffix"
        assert path.read_text() == text
    assert [p.name for p in path.parent.iterdir()] == ["result.json"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "result.json"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), written_whole(path) as draft, draft.open("w", encoding="ascii") as file:
        file.writelines(["half of the n", "é"])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_others_may_read_it_as_they_may_any_new_file(tmp_path):
    """Temporary files are for their owner's eyes alone; the result of writing one must not be."""
    plain, whole = tmp_path / "plain", tmp_path / "whole"
    plain.touch()
    with written_whole(whole) as draft:
        draft.touch()
    assert stat.S_IMODE(whole.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_two_writers_do_not_meet(tmp_path):
    """Processes that share a price list may write it at once: the later one wins, with a whole file."""
    path = tmp_path / "prices.json"
    with written_whole(path) as first, written_whole(path) as second:
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]
