"""Finished results in a folder, so that work that was killed goes on where it was, and two workers share what is done.

    rows = Kept.as_json(folder)
    row = rows.get_or("bert-0", lambda: measured(bert))              made once, read ever after
    Kept(folder / fingerprint(settings, seed), save, load)           a folder for each run, so that none takes another's

The invariant: a result is there as a whole or not at all, and one that cannot be read is made again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from rlflow.atomic_file import written_whole

T = TypeVar("T")
_DIGITS = 16

log = logging.getLogger(__name__)


def fingerprint(*parts: object, content: Iterable[bytes | np.ndarray] = ()) -> str:
    """Return 16 hexadecimal digits that depend on all parts, which are plain values and dataclasses of such.

    content: data of any size, piece by piece. `TypeError` for a part that JSON cannot hold.
    """
    digest = sha256(json.dumps(parts, sort_keys=True, default=_plain).encode())
    for piece in content:
        digest.update(piece if isinstance(piece, bytes) else piece.tobytes())
    return digest.hexdigest()[:_DIGITS]


def _plain(part: Any) -> Any:
    if is_dataclass(part):
        return {entry.name: getattr(part, entry.name) for entry in fields(part)}
    if isinstance(part, Path):
        return str(part)
    raise TypeError(f"a fingerprint covers plain values and dataclasses, not {type(part).__name__}")


@dataclass(frozen=True)
class Kept(Generic[T]):
    """Results in a folder, each a file or a folder of its own, by their keys.

    write(result, path) and read(path): of one result. suffix: of the names of files.
    """

    folder: Path
    write: Callable[[T, Path], object]
    read: Callable[[Path], T]
    suffix: str = ""

    @classmethod
    def as_json(
        cls,
        folder: Path,
        encode: Callable[[T], Any] = lambda result: result,
        decode: Callable[[Any], T] = lambda of: of,
    ) -> Kept[T]:
        """Return results in JSON files; encode and decode: to what JSON holds, and back."""
        return cls(
            folder,
            lambda result, path: path.write_text(json.dumps(encode(result)), encoding="utf-8"),
            lambda path: decode(json.loads(path.read_text(encoding="utf-8"))),
            ".json",
        )

    def place(self, key: str) -> Path:
        """Return the path of a result."""
        return self.folder / f"{key}{self.suffix}"

    def find(self, key: str) -> T | None:
        """Return a result that was kept; None if there is none, or, with a warning, if it cannot be read."""
        place = self.place(key)
        if not place.exists():
            return None
        try:
            return self.read(place)
        except Exception as error:  # a broken file raises nearly anything, by which of its bytes is broken
            log.warning("%s cannot be used (%s); it is made again", place, error)
            return None

    def keep(self, key: str, result: T) -> None:
        """Write a result, in place of an older one."""
        with written_whole(self.place(key)) as draft:
            self.write(result, draft)

    def get_or(self, key: str, make: Callable[[], T]) -> T:
        """Return a result that was kept, or make and keep it; it is read again, so that both are the same."""
        found = self.find(key)
        if found is None:
            self.keep(key, make())
            found = self.read(self.place(key))
        return found
