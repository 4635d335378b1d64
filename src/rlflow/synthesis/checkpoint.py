"""Finished parts of a generation of rules, kept in files, so that a generation that was killed goes on where it ended.

A file is named after everything that it depends on: the configuration, the code and the libraries. It begins with a
digest of its content, so that a damaged file is recognised.
"""

from __future__ import annotations

import json
import logging
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rlflow.atomic_file import written_whole

log = logging.getLogger(__name__)

_PACKAGE = Path(__file__).parents[1]
_CODE = ("egraph", "ir", "onnx_io", "ops", "rules", "runtime", "synthesis")
_LIBRARIES = ("numpy", "onnxruntime")


def checkpoint_path(folder: Path, name: str, configuration: object) -> Path:
    """Return the path for content of this name made with this configuration, code and libraries."""
    content = "\n".join((_code(), *map(version, _LIBRARIES), repr(configuration)))
    return folder / f"{name}-{_digest(content.encode())}.json"


def write_checkpoint(path: Path, content: Any) -> None:
    """Write content as JSON, whole or not at all."""
    body = json.dumps(content).encode()
    with written_whole(path) as draft:
        draft.write_bytes(_digest(body).encode() + b"\n" + body)


def read_checkpoint(path: Path) -> Any | None:
    """Read content back; None if there is none or the file is damaged."""
    if not path.exists():
        return None
    digest, _, body = path.read_bytes().partition(b"\n")
    if digest != _digest(body).encode():
        log.warning("%s is damaged; its content is made again", path)
        return None
    return json.loads(body)


def code_files() -> list[Path]:
    """Return the modules that a generated rule depends on, relative to the package `rlflow`, sorted."""
    return sorted(path.relative_to(_PACKAGE) for package in _CODE for path in (_PACKAGE / package).rglob("*.py"))


@cache
def _code() -> str:
    return _digest(b"".join(bytes(path) + b"\n" + (_PACKAGE / path).read_bytes() for path in code_files()))


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]
