"""The only home of jsonschema."""

import json
import math
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from rlflow.errors import InputError, RLFlowError

_SUFFIX = ".schema.json"
_SHARED = "common"


@cache
def names() -> tuple[str, ...]:
    """Names of the schemas that a document can be checked against, sorted."""
    found = (entry.name.removesuffix(_SUFFIX) for entry in files(__package__).iterdir() if entry.name.endswith(_SUFFIX))
    return tuple(sorted(name for name in found if name != _SHARED))


def schema(name: str) -> dict[str, Any]:
    """The schema `name` as a new document. Raises InputError for a name that is not in `names()`."""
    if name not in names():
        raise InputError(f"no schema {name!r}; there are {', '.join(names())}")
    return _read(name)


def validate(name: str, document: Any) -> None:
    """Check `document` (lists, dicts, strings, numbers) against the schema `name`.

    Numbers must be finite, which JSON Schema cannot say. Raises RLFlowError naming the path inside the
    document and what is wrong there, for up to all faults, in the order of their paths.
    """
    schema(name)
    faults = [(list(error.absolute_path), error.message) for error in _validator(name).iter_errors(document)]
    faults += [(path, f"{value} is not a finite number") for path, value in _non_finite(document, [])]
    if faults:
        lines = sorted(f"at {_path_text(path)}: {message}" for path, message in faults)
        raise RLFlowError(f"document does not follow schema {name!r}: " + "; ".join(lines))


def resolver(document: dict[str, Any]) -> Any:
    """Return the object that looks up a schema's references: `resolver(document).lookup(reference).contents`."""
    own = Resource.from_contents(document)
    return _shared().with_resource(own.id() or "", own).resolver(own.id() or "")


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(_read(name), registry=_shared())


@cache
def _shared() -> Registry:
    """The definitions that all schemas may refer to, by their address."""
    shared = Resource.from_contents(_read(_SHARED))
    return Registry().with_resource(shared.id() or _SHARED, shared)


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(files(__package__).joinpath(name + _SUFFIX).read_text(encoding="utf-8"))
    return content


def _non_finite(value: Any, path: list[str | int]) -> Iterator[tuple[list[str | int], float]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _non_finite(item, [*path, key])
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _non_finite(item, [*path, index])


def _path_text(path: list[str | int]) -> str:
    return "/" + "/".join(map(str, path))
