"""Checking a document (lists, dicts, strings, numbers) against its type: every fault, with its path in the document."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, get_args

import msgspec

from rlflow.errors import RLFlowError
from rlflow.schemas.figures import ORDERED
from rlflow.schemas.forms import Form


def validate(kind: Any, document: Any) -> None:
    """Check a document against its type, a class derived from `Document` or an annotation.

    Numbers must be finite, and what the classes say of their objects (`Document.contradictions`) must hold. Raises
    RLFlowError naming the path inside the document and what is wrong there, for all faults, in the order of paths.
    """
    if found := sorted(_faults(Form.of(kind), document, "")):
        raise RLFlowError("document does not follow its type: " + "; ".join(found))


def _faults(form: Form, value: Any, path: str) -> Iterator[str]:
    """Yield the faults of a value: its own, else those of the values below it, else how these contradict each other."""
    if value is None and form.nullable:
        return
    found = [f"at {path or '/'}: {problem}" for problem in _wrong(form, value)]
    found = found or [fault for key, item in _items(value) for fault in _below(form, key, item, path)]
    yield from found or (
        f"at {f'{path}/{key}'.rstrip('/') or '/'}: {problem}" for key, problem in _contradictions(form, value)
    )


def _below(form: Form, key: str | int, item: Any, path: str) -> Iterator[str]:
    child = form.child(key)
    if child is None and form.is_object:
        yield f"at {path or '/'}: it has no key {key!r}"
    else:
        yield from _faults(child or Form(Any), item, f"{path}/{key}")


def _wrong(form: Form, value: Any) -> Iterator[str]:
    """Yield what is wrong with a value whatever is below it."""
    if not form.is_object:
        try:
            msgspec.convert(_number(value), _shallow(form))
        except msgspec.ValidationError as error:
            yield f"{error}, and it is {value!r}" if isinstance(value, str | int | float) else str(error)
        if isinstance(value, float) and not math.isfinite(value):
            yield f"{value} is not a finite number"
    elif isinstance(value, dict):
        yield from (f"{key!r} is a required key" for key in sorted(form.required - set(value)))
    else:
        yield f"{value!r} is not an object"


def _contradictions(form: Form, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the key and the problem of values that are right by themselves and not together."""
    if form.is_object:
        yield from form.cls.contradictions(value)
    if form.says("uniqueItems") and len(set(value)) < len(value):
        yield "", f"{value} has an element twice"
    if form.says(ORDERED) and value[0] > value[1]:
        yield "", f"the low end {value[0]} lies above the high end {value[1]}"


def _shallow(form: Form) -> Any:
    """The type of a value that may have anything below it."""
    bare = form.type
    if form.origin is tuple:
        bare = tuple[tuple(Any for _ in form.children)]  # type: ignore[misc]
    elif form.origin is dict:
        bare = dict[get_args(form.type)[0], Any]  # type: ignore[misc]
    elif form.origin is list:
        bare = list[Any]
    return Annotated[(bare, *form.metas)] if form.metas else bare  # type: ignore[return-value]


def _number(value: Any) -> Any:
    """A whole number as an integer, since JSON does not tell 1.0 from 1, and another one without its class."""
    if not isinstance(value, float):
        return value
    return int(value) if value.is_integer() else float(value)


def _items(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from enumerate(value)
