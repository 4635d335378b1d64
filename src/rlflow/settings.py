"""A section of conf/, or of a description on disk, read as the dataclass of its settings."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

import msgspec

from rlflow.errors import InputError

T = TypeVar("T")


def read_config(kind: type[T], section: Mapping[str, Any], place: str | None = None) -> T:
    """Return a configuration from its section. `InputError` for a key that `kind` does not have, or of another type.

    A list becomes a tuple where `kind` has one, and a section in it the dataclass that `kind` has there. place: of the
    section in an error; by default the name of `kind`.
    """
    place = place or kind.__name__
    known = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
    unknown = sorted(set(section) - set(known))
    if unknown:
        raise InputError(f"{place}: unknown setting {', '.join(unknown)}; the settings are {', '.join(known)}")
    types = get_type_hints(kind)
    return kind(**{name: typed(types[name], value, f"{place}.{name}") for name, value in section.items()})


def typed(kind: Any, value: Any, place: str) -> Any:
    """Return what JSON and YAML write as a number, a list or a mapping as the type that it stands for.

    place: of the value in an error. What is no JSON, such as another dataclass, is returned as it is.
    """
    if is_dataclass(kind) and isinstance(value, Mapping):
        return read_config(kind, value, place)  # type: ignore[arg-type]
    if not isinstance(value, str | int | float | list | dict | None):
        return value
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{place}: {error}, and it is {value!r}") from None
