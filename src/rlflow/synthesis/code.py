"""The code and the libraries that a generated rule depends on, which name the files that finished parts are kept in."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from pathlib import Path

from rlflow.kept import fingerprint

_PACKAGE = Path(__file__).parents[1]
_CODE = ("egraph", "ir", "onnx_io", "ops", "rules", "runtime", "synthesis")
_LIBRARIES = ("numpy", "onnxruntime")


def made_by(configuration: object) -> str:
    """Return a digest of all that rules of a configuration depend on: its `repr`, the code and the libraries."""
    return fingerprint(repr(configuration), _code(), *map(version, _LIBRARIES))


def code_files() -> list[Path]:
    """Return the modules that a generated rule depends on, relative to the package `rlflow`, sorted."""
    return sorted(path.relative_to(_PACKAGE) for package in _CODE for path in (_PACKAGE / package).rglob("*.py"))


@cache
def _code() -> str:
    return fingerprint(content=(bytes(path) + b"\n" + (_PACKAGE / path).read_bytes() for path in code_files()))
