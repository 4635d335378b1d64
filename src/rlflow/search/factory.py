"""Make a search from its options, which a user may have misspelt."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rlflow.errors import InputError

T = TypeVar("T")


def make_search(make: Callable[..., T], parts: tuple[Any, ...], options: Mapping[str, Any], subject: str) -> T:
    """Return `make(*parts, **options)`; `InputError` about the `subject` for an option that `make` does not take."""
    signature = inspect.signature(make)
    try:
        signature.bind(*parts, **options)
    except TypeError as error:
        known = ", ".join([*signature.parameters][len(parts) :]) or "none"
        raise InputError(f"{subject} cannot be made: {error}; its options are {known}") from None
    return make(*parts, **options)
