"""A JSON file that describes what lies beside it in a folder, and one sentence where that cannot be read.

    POLICY = Described("policy", "policy", "make it with `make study NAME=policy`")
    POLICY.describe({"version": 3}, folder)                   policy.json
    with POLICY.reading(folder):
        content = POLICY.description(folder)

The invariant: equal descriptions give equal bytes, and what is broken is an `InputError` that says what to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError

_LONGEST_REASON = 240  # characters


@dataclass(frozen=True)
class Described:
    """A kind of folder: the stem of its JSON file, its name in errors, and what the user can do if it is missing.

    The file is written whole or not at all. unreadable: what reading raises where a file is broken.
    """

    stem: str
    name: str
    remedy: str
    indent: int = 2  # of the JSON
    unreadable: ClassVar[tuple[type[Exception], ...]] = (
        InputError,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RuntimeError,
    )

    def describe(self, description: Mapping[str, Any], folder: Path) -> None:
        """Write the JSON."""
        with written_whole(folder / f"{self.stem}.json") as draft:
            draft.write_text(json.dumps(description, indent=self.indent, allow_nan=False) + "\n", encoding="utf-8")

    def description(self, folder: Path) -> dict[str, Any]:
        """Return the content of the JSON."""
        content = json.loads((folder / f"{self.stem}.json").read_text(encoding="utf-8"), parse_constant=_no_number)
        if not isinstance(content, dict):
            raise ValueError(f"{self.stem}.json describes nothing")
        return content

    @contextmanager
    def reading(self, folder: Path) -> Iterator[None]:
        """Raise an `InputError` of one line for all that broken or missing files raise in the block."""
        try:
            yield
        except self.unreadable as error:
            reason = " ".join(str(error).split())[:_LONGEST_REASON]  # torch has a line for each tensor
            raise InputError(f"{self.name}: {folder} cannot be read ({reason}); {self.remedy}") from error


def _no_number(text: str) -> None:
    """Refuse the NaN and infinities that Python reads in JSON, and that nothing here is written with."""
    raise ValueError(f"{text} is no number of JSON")
