"""Symbols for dynamic dimensions that arithmetic derives from other ones: the same arithmetic, the same symbol.

Two branches of a network over an image of dynamic size meet again with images of one size, which must have one name:
`plus("height", -2)` is "~height-2" on either branch. Derived symbols begin with "~" and are written in one way only.
Dimensions of one symbol are equal; equal dimensions may still have different symbols.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rlflow.ir.tensor_type import Dimension

_SHIFTED = re.compile(r"~(.*)([+-][0-9]+)", re.DOTALL)
_DIVIDED = re.compile(r"~\((.*)\)//([0-9]+)", re.DOTALL)
_LIMITED = re.compile(r"~min\((.*), ([0-9]+)\)", re.DOTALL)


def plus(symbol: str, number: int) -> str:
    """Return the symbol of a dimension plus a number: plus("n", 1) is "~n+1"."""
    shifted = _SHIFTED.fullmatch(symbol)
    base, before = (shifted[1], int(shifted[2])) if shifted else (symbol, 0)
    return f"~{base}{before + number:+d}" if before + number else base


def over(symbol: str, divisor: int) -> str:
    """Return the symbol of a dimension divided by a number and rounded down."""
    return f"~({symbol})//{divisor}" if divisor != 1 else symbol


def at_most(symbol: str, number: int) -> str:
    """Return the symbol of the smaller one of a dimension and a number."""
    return f"~min({symbol}, {number})"


def is_at_most(dimension: Dimension, symbol: Dimension) -> bool:
    """Return True if the dimension is `at_most` of this symbol and some number."""
    return isinstance(dimension, str) and dimension.startswith(f"~min({symbol}, ")


def size_of(dimension: Dimension, sizes: Mapping[str, int]) -> int | None:
    """Return the size of a dimension from those of symbols, however it was derived from them; None if it is not known.

    size_of("~(~height-2)//2", {"height": 32}) is 15.
    """
    if not isinstance(dimension, str) or dimension in sizes:
        return sizes[dimension] if isinstance(dimension, str) else dimension
    for form, derive in ((_SHIFTED, int.__add__), (_DIVIDED, int.__floordiv__), (_LIMITED, min)):
        found = form.fullmatch(dimension)
        base = size_of(found[1], sizes) if found else None
        if found and base is not None:
            return derive(base, int(found[2]))
    return None
