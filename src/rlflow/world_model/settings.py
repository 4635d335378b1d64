"""A section of conf/ read as the dataclass of its settings."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from rlflow.errors import InputError

T = TypeVar("T")


def read_config(kind: type[T], section: Mapping[str, Any]) -> T:
    """Return a configuration from its section of conf/. `InputError` for a key that `kind` does not have."""
    known = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
    unknown = sorted(set(section) - set(known))
    if unknown:
        raise InputError(f"{kind.__name__}: unknown setting {', '.join(unknown)}; the settings are {', '.join(known)}")
    return kind(**section)
