"""A section of conf/, or of a description on disk, read as the dataclass of its settings."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_origin, get_type_hints

from rlflow.errors import InputError

T = TypeVar("T")


def read_config(kind: type[T], section: Mapping[str, Any]) -> T:
    """Return a configuration from its section. `InputError` for a key that `kind` does not have.

    A list becomes a tuple where `kind` has one, and a section in it the dataclass that `kind` has there.
    """
    known = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
    unknown = sorted(set(section) - set(known))
    if unknown:
        raise InputError(f"{kind.__name__}: unknown setting {', '.join(unknown)}; the settings are {', '.join(known)}")
    types = get_type_hints(kind)
    return kind(**{name: _typed(types[name], value) for name, value in section.items()})


def _typed(kind: Any, value: Any) -> Any:
    """Return what JSON and YAML write as a list or a mapping as the tuple or dataclass that it stands for."""
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(value)
    if is_dataclass(kind) and isinstance(value, Mapping):
        return read_config(kind, value)  # type: ignore[arg-type]
    return value
