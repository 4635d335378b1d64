"""What a generation of rules has finished, kept in files, so that one that was killed goes on where it ended.

A file is named by what it depends on: the configuration, the code and the libraries. It begins with a digest of its
content, so that a damaged one is known as such.
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

_CODE = ("ir", "onnx_io", "ops", "rules", "runtime")
_LIBRARIES = ("numpy", "onnxruntime")


def checkpoint_path(folder: Path, name: str, configuration: object) -> Path:
    """Where this is kept; `configuration` is told by its representation."""
    content = "\n".join((_code(), *map(version, _LIBRARIES), repr(configuration)))
    return folder / f"{name}-{_digest(content.encode())}.json"


def write_checkpoint(path: Path, content: Any) -> None:
    """JSON, whole or not at all."""
    body = json.dumps(content).encode()
    with written_whole(path) as draft:
        draft.write_bytes(_digest(body).encode() + b"\n" + body)


def read_checkpoint(path: Path) -> Any | None:
    """None where nothing was kept, or where it is damaged."""
    if not path.exists():
        return None
    digest, _, body = path.read_bytes().partition(b"\n")
    if digest != _digest(body).encode():
        log.warning("%s is damaged: what it kept is made again", path)
        return None
    return json.loads(body)


@cache
def _code() -> str:
    root = Path(__file__).parents[1]
    files = sorted(path for package in _CODE for path in (root / package).rglob("*.py"))
    return _digest(b"".join(bytes(path.relative_to(root)) + b"\n" + path.read_bytes() for path in files))


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]
