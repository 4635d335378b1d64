"""Symbols that stand for what arithmetic makes of another symbol: the same arithmetic, the same symbol.

Two branches of a network over an image of open size meet again with images of one size, which must have one name.
Derived symbols begin with "~" and are written in one way only: sizes that are equal may still have different symbols.
"""

from __future__ import annotations

import re

from rlflow.ir.tensor_type import Dimension

_SHIFTED = re.compile(r"~(.*)([+-][0-9]+)", re.DOTALL)


def plus(symbol: str, number: int) -> str:
    """The symbol of a dimension that is larger by so much."""
    shifted = _SHIFTED.fullmatch(symbol)
    base, before = (shifted[1], int(shifted[2])) if shifted else (symbol, 0)
    return f"~{base}{before + number:+d}" if before + number else base


def over(symbol: str, divisor: int) -> str:
    """The symbol of a dimension divided by a number and rounded down."""
    return f"~({symbol})//{divisor}" if divisor != 1 else symbol


def at_most(symbol: str, number: int) -> str:
    """The symbol of the smaller one of a dimension and a number."""
    return f"~min({symbol}, {number})"


def is_at_most(dimension: Dimension, symbol: Dimension) -> bool:
    """Whether a dimension is the smaller one of a symbol and a number."""
    return isinstance(dimension, str) and dimension.startswith(f"~min({symbol}, ")
