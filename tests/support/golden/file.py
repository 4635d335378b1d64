"""The file of the golden set: how it is read, written and compared with what was computed."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from support.golden.digests import Value
from support.repository import REPOSITORY

FILE = REPOSITORY / "tests/golden.json"
PROCESSOR = "processor"
"""The section of what may differ between processors and between versions of libraries."""
MACHINE = "machine"
"""The key of the machine on which that section was recorded."""

Entries = Mapping[str, Value]
Sections = Mapping[str, Entries]


class Difference(NamedTuple):
    """A value that is not what was recorded; None stands for a missing one."""

    name: str
    before: str | int | None
    after: str | int | None

    def __str__(self) -> str:
        return f"{self.name}: {self.before} before, {self.after} now"


def read(path: Path = FILE) -> dict[str, dict[str, Value]]:
    """Return the sections of the file, the machine among them; none if there is no file yet."""
    if not path.exists():
        return {}
    content: dict[str, dict[str, Value]] = json.loads(path.read_text(encoding="utf-8"))
    return content


def write(sections: Sections, path: Path = FILE) -> None:
    """Write the sections, sorted, with an entry a line, so that a change shows as the lines that it changes."""
    path.write_text(text(sections), encoding="utf-8")


def text(sections: Sections) -> str:
    """Return the content of the file."""
    blocks = []
    for section, entries in sorted(sections.items()):
        lines = [
            f"  {json.dumps(name)}: {json.dumps(value, sort_keys=True)}" for name, value in sorted(entries.items())
        ]
        blocks.append(f" {json.dumps(section)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def differences(section: str, before: Entries, after: Entries) -> Iterator[Difference]:
    """Yield what differs between the entries of a section, value by value."""
    for name in sorted({*before, *after}):
        old, new = _values(before.get(name)), _values(after.get(name))
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                yield Difference("/".join(filter(None, (section, name, key))), old.get(key), new.get(key))


def _values(value: Value | None) -> Mapping[str, str | int]:
    if value is None:
        return {}
    return value if isinstance(value, Mapping) else {"": value}
