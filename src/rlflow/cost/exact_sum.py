"""Sums of floats that are exact, so that they do not depend on the order of their terms or on how they came about.

    exact([0.1, 0.2, -0.3]) == (2.7755575615628914e-17,)          while 0.1 + 0.2 - 0.3 is twice as much

A sum is kept as a few floats, largest first, whose exact sum it is: mostly two. Adding such sums and rounding once, by
`math.fsum`, gives what adding all terms and rounding once gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum

Exact = tuple[float, ...]
"""A number as the exact sum of these floats, of which each is the rounded rest; () is 0."""


def exact(terms: Iterable[float]) -> Exact:
    """Return the exact sum of finite floats."""
    rest = list(terms)
    parts: list[float] = []
    while part := fsum(rest):
        parts.append(part)
        rest.append(-part)
    return tuple(parts)
