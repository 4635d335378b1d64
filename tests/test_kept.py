"""Results are made once, are there as a whole or not at all, and belong to all that their fingerprint covers."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from rlflow.kept import Kept, fingerprint


@dataclass(frozen=True)
class Settings:
    """Settings with others in them."""

    name: str
    place: Path
    inner: tuple[object, ...] = ()


ONE = Settings("one", Path("here"), (Settings("two", Path("there")), 1.5))


def test_a_fingerprint_depends_on_every_part_and_on_nothing_else():
    others = [
        replace(ONE, name="other"),
        replace(ONE, place=Path("elsewhere")),
        replace(ONE, inner=(Settings("two", Path("there")), 1.25)),
    ]
    found = [fingerprint(one, [1, {"a": 2}]) for one in (ONE, *others)]
    found += [fingerprint(ONE, [1, {"a": 3}]), fingerprint(ONE), fingerprint(ONE, content=[b"a"])]
    assert len(set(found)) == len(found)
    assert fingerprint(replace(ONE), [1, {"a": 2}]) == found[0]
    assert {len(one) for one in found} == {16}


def test_arrays_are_covered_by_their_values():
    array = np.arange(6).reshape(2, 3)
    assert fingerprint(content=[array.T]) == fingerprint(content=[np.ascontiguousarray(array.T)])
    assert fingerprint(content=[array.T]) != fingerprint(content=[array])


def test_a_part_that_json_cannot_hold_is_refused():
    with pytest.raises(TypeError, match="not object"):
        fingerprint(object())


def write(lines: list[str], folder: Path) -> None:
    folder.mkdir()
    for number, line in enumerate(lines):
        (folder / str(number)).write_text(line)
        if line == "fail":
            raise OSError("disk full")


def read(folder: Path) -> list[str]:
    return [file.read_text() for file in sorted(folder.iterdir())]


def test_a_folder_of_files_is_there_as_a_whole_or_not_at_all(tmp_path: Path):
    """Also where an older one is there, whose other files go."""
    kept = Kept(tmp_path / "new", write, read)
    with pytest.raises(OSError, match="disk full"):
        kept.keep("a", ["b", "fail"])
    assert kept.find("a") is None
    assert kept.get_or("a", lambda: ["b", "c", "d"]) == ["b", "c", "d"]
    assert kept.get_or("a", lambda: pytest.fail("it is made twice")) == ["b", "c", "d"]
    kept.keep("a", ["e"])
    assert kept.find("a") == ["e"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a"]


def test_a_result_is_the_same_whether_it_was_made_or_found(tmp_path: Path):
    """JSON has lists alone."""
    kept = Kept.as_json(tmp_path)
    made, found = (kept.get_or("a/b", lambda: {"tuple": (1, 2)}) for _ in range(2))
    assert made == found == {"tuple": [1, 2]}
