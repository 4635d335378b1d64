"""The file of the golden set is whole, and agrees with what is quick to compute; `make golden` computes all of it."""

from pathlib import Path

import numpy as np
import pytest
from support.golden import library
from support.golden.digests import digest, weights
from support.golden.file import FILE, MACHINE, PROCESSOR, differences, read, text, write
from support.walks import LIBRARY

from rlflow.rules.library import Library

SECTIONS = {
    "documents",
    "egraphs",
    "library",
    "models",
    "pass ordering",
    "policy",
    "rollouts",
    "searches",
    MACHINE,
    PROCESSOR,
}
SEARCHES = 10 * 3
"""Every method searches ten graphs by three kinds of prices."""
METHODS = 10


def library_changes(rules: Library) -> set[str]:
    now = {name: compute() for name, compute in library.entries(rules).items()}
    return {one.name for one in differences("library", read()["library"], now)}


def test_the_file_is_whole_and_sorted() -> None:
    content = read()
    assert set(content) == SECTIONS
    assert FILE.read_text(encoding="utf-8") == text(content), "an entry a line, sorted: write it by its command"
    assert len(content["searches"]) == SEARCHES * (METHODS - 1)
    assert sum(name.startswith("searches/") for name in content[PROCESSOR]) == SEARCHES


def test_names_say_nothing_of_modules() -> None:
    """Since modules move: none is a path or an import string of today."""
    names = [name for section, entries in read().items() if section != MACHINE for name in entries]
    assert len(names) == len(set(names)) > 300
    assert not [name for name in names if "rlflow." in name or name.endswith(".py")]


def test_the_shipped_library_is_the_recorded_one() -> None:
    assert library_changes(LIBRARY) == set()


@pytest.mark.parametrize(
    ("rules", "changed"),
    [
        (LIBRARY.rules[1:], {"hash", "ids in order", "family linear/records", "family linear/rules"}),
        ((*LIBRARY.rules[1::-1], *LIBRARY.rules[2:]), {"hash", "ids in order", "family linear/records"}),
    ],
    ids=["a rule is missing", "two rules change places"],
)
def test_another_library_is_reported(rules: tuple, changed: set[str]) -> None:
    assert library_changes(Library(tuple(rules))) == {f"library/{name}" for name in changed}


def test_differences_name_the_value_with_before_and_after() -> None:
    before = {"same": 1, "count": 2, "search": {"rewrites": 3, "steps": 4}, "gone": "x"}
    after = {"same": 1, "count": 5, "search": {"rewrites": 3, "steps": 6}, "new": "y"}
    assert [str(one) for one in differences("part", before, after)] == [
        "part/count: 2 before, 5 now",
        "part/gone: x before, None now",
        "part/new: None before, y now",
        "part/search/steps: 4 before, 6 now",
    ]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    sections = {"b": {"two": 2, "one": "1"}, "a": {"three": {"x": 1, "y": "0x1.8p+1"}}}
    write(sections, tmp_path / "golden.json")
    assert read(tmp_path / "golden.json") == sections
    assert read(tmp_path / "none.json") == {}
    assert read(tmp_path / "golden.json").keys() == {"a", "b"}


@pytest.mark.parametrize(
    "other", [[1, 2], [True, 2.0], [[1], 2.0], [1, 2.0000000000000004], ["1", 2.0], [1, 2.0, None]]
)
def test_a_digest_tells_values_apart(other: list) -> None:
    """To the last bit and by type, but not by the order of a mapping's keys."""
    assert digest(other) != digest([1, 2.0]) == digest([1, 2.0])
    assert digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1}) != digest({"a": 1, "b": 2})


def test_an_object_has_no_digest() -> None:
    """Its fields would have to be named, and names may change."""
    with pytest.raises(TypeError, match="not Library"):
        digest([LIBRARY])


class Held:
    """Holds an array as a tensor does."""

    def __init__(self, values: list[float]) -> None:
        self.values = np.array(values)

    def detach(self) -> "Held":
        return self

    def numpy(self) -> np.ndarray:
        return self.values


def test_weights_have_one_digest_whatever_their_names() -> None:
    one, other = Held([1.0, 2.0]), Held([2.0, 1.0])
    assert weights({"a": one, "b": other}) == weights({"x.y": other, "z": one})
    assert weights({"a": one}) != weights({"a": other})
