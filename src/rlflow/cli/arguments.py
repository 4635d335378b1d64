"""Arguments that several commands take, from text: times and shapes."""

from __future__ import annotations

import re

from rlflow.errors import InputError

_UNITS_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")
_SHAPE = re.compile(r"\d+(x\d+)*")


def parse_budget(text: str) -> float:
    """Return seconds. `InputError` for anything that is not a positive time."""
    found = _BUDGET.fullmatch(text.strip())
    seconds = float(found[1]) * _UNITS_S[found[2] or "s"] if found else 0.0
    if seconds <= 0:
        raise InputError(f"{text!r} is not a budget: give a positive time such as 500ms, 60s or 5m")
    return seconds


def parse_shapes(text: str) -> tuple[str, tuple[int, ...] | tuple[tuple[int, ...], ...]]:
    """Return the name of an input and its shape, or its shapes at several sizes, as in x=1x128+8x384.

    `InputError` for anything else.
    """
    name, _, given = text.rpartition("=")
    shapes = tuple(parse_shape(f"{name}={shape}")[1] for shape in given.split("+"))
    return name, shapes if len(shapes) > 1 else shapes[0]


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Return the name of an input and its shape. `InputError` for anything that is not like x=1x128."""
    name, _, sizes = text.rpartition("=")
    if not name or not _SHAPE.fullmatch(sizes):
        raise InputError(f"{text!r} is not a shape: write the input's name and its sizes, as in x=1x128")
    return name, tuple(int(size) for size in sizes.split("x"))
