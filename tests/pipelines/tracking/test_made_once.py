"""What jobs have in common is made once, as a whole, and found by all of them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tracking.made_once import made_once

OUTPUTS = ["data/rules", "data/results/rules.yaml"]


def job(shared: Path, folder: Path, text: str) -> bool:
    """Work unless it is there; True if it was."""
    with made_once(shared, OUTPUTS, folder) as is_there:
        if not is_there:
            for place in (folder / "data/rules/library.jsonl", folder / "data/results/rules.yaml"):
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text)
    return is_there


def test_the_first_job_makes_it_and_all_have_it(tmp_path: Path):
    """Of jobs at the same time, too; a folder's older outputs are replaced, and those of others stay as they are."""
    folders = [tmp_path / name for name in "abc"]
    stale = folders[2] / "data/rules/stale.jsonl"
    stale.parent.mkdir(parents=True)
    stale.write_text("old")
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda folder: job(tmp_path / "shared/work", folder, folder.name), folders))
    assert sorted(found) == [False, True, True]
    texts = {(folder / "data/rules/library.jsonl").read_text() for folder in folders}
    assert texts == {(folder / "data/results/rules.yaml").read_text() for folder in folders}
    assert len(texts) == 1
    if found[2]:
        assert not stale.exists()

    (folders[0] / "data/results/rules.yaml").unlink()
    (folders[0] / "data/results/rules.yaml").write_text("replaced")
    assert (folders[1] / "data/results/rules.yaml").read_text() in texts


def test_what_has_failed_is_made_by_the_next(tmp_path: Path):
    shared, folder = tmp_path / "shared/work", tmp_path / "a"
    with pytest.raises(ZeroDivisionError), made_once(shared, OUTPUTS, folder):
        raise ZeroDivisionError
    assert not shared.exists()
    assert not job(shared, folder, "a")
    assert job(shared, tmp_path / "b", "b")
    assert (tmp_path / "b/data/rules/library.jsonl").read_text() == "a"


def test_an_output_that_was_not_written_is_no_success(tmp_path: Path):
    with pytest.raises(FileNotFoundError), made_once(tmp_path / "shared/work", OUTPUTS, tmp_path / "a"):
        pass
    assert not (tmp_path / "shared/work").exists()
