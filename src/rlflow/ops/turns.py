"""Turning points: the numbers at which an operator begins to compute something else, such as the bounds of a Clip.

Two models may agree on every number that is drawn and still differ beyond a bound that one of them holds. So each
operator says where it turns, as a reading of its operands (`ops/use.py`), and hands on where the readers of its result
do:

    Clip(x, 0, 6)             x turns at 0 and 6
    Greater(Neg(x), 10)       x turns at -10
    Relu(Add(x, 3))           x turns near -3: the sum is rounded, and what lies on the turn may fall to either side

The invariant: a number that is called exact reaches its turn without rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from rlflow.ops.use import Application, Reading, Use

_LARGEST_HALF = 65504.0
_MOST = 24
"""Turning points that are remembered of one value."""


def turning(numbers: Iterable[float], *, exact: bool = True) -> Use:
    """The use of a value that turns at these numbers."""
    kept = frozenset(sorted((float(n) for n in numbers if math.isfinite(n)), key=abs)[:_MOST])
    return Use(turns=kept) if exact else Use(near=kept)


def turns_at(*numbers: float) -> Reading:
    """The first operand turns at numbers that the operator has by nature."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        yield 0, turning(numbers)

    return read


def bends_at(*numbers: float) -> Reading:
    """The same of an operator that hands its operand on, on one side at least."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        yield 0, _handed_on(result) | turning(numbers)

    return read


def bends_at_attribute(name: str, default: float) -> Reading:
    """The same at a number that an attribute gives, and at its negative."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        number = node.real(name, default)
        yield 0, _handed_on(result) | turning((number, -number))

    return read


def bends_at_bounds(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The first operand is kept within a lowest and a highest number: two more operands, or attributes of old."""
    bounds = [*node.numbers(1), *node.numbers(2), node.real("min", -math.inf), node.real("max", math.inf)]
    yield 0, _handed_on(result) | turning(bounds)


def bends_at_others(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """Each operand bounds the others."""
    for place in range(node.operands):
        others = [number for other in range(node.operands) if other != place for number in node.numbers(other)]
        yield place, _handed_on(result) | turning(others)


def is_compared(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """Each of two operands turns at what the other one stores; of neither is the result made."""
    for place in (0, 1):
        yield place, turning(node.numbers(1 - place))


def overflows(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The first operand is converted to an element type, whose largest number may be a small one."""
    if node.element_type("to") == "float16":
        yield 0, turning((-_LARGEST_HALF, _LARGEST_HALF), exact=False)


def ramps(slope: float, middle: float) -> Reading:
    """The first operand counts between the numbers at which `alpha` * x + `beta` is 0 and 1."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        alpha, beta = node.real("alpha", slope), node.real("beta", middle)
        yield 0, turning([(end - beta) / alpha for end in (0.0, 1.0)] if alpha else [], exact=False)

    return read


def saturates(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The first operand is divided by a scale and kept within the range of the type of a zero point, bytes at first."""
    scales, zeros = node.numbers(1) if node.operands > 1 else [], node.numbers(2) or [0.0]
    low, high = node.range_of(2) if node.operands > 2 else (0.0, 255.0)
    yield 0, turning([scale * (end - zeros[0]) for scale in scales[:4] for end in (low, high)], exact=False)


def leaves_remainder(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The first operand turns at 0 and at a stored divisor, of either sign."""
    yield 0, turning([signed for number in node.numbers(1)[:4] for signed in (0.0, number, -number)])


def shifted(left: float, right: float) -> Reading:
    """Operands of left * a + right * b, of which one may be a stored number."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        for place, own, other in ((0, left, right), (1, right, left)):
            number = node.number(1 - place) if node.operands > 1 else None
            if number is not None:
                yield place, _through(result, lambda t, n=number, o=own, r=other: (t - r * n) / o)  # type: ignore[misc]

    return read


def scaled(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """Operands of a product, of which one may be a stored number."""
    for place in (0, 1):
        number = node.number(1 - place) if node.operands > 1 else None
        if number:
            yield place, _through(result, lambda t, n=number: t / n)  # type: ignore[misc]


def parted(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The dividend of a stored number."""
    number = node.number(1) if node.operands > 1 else None
    if number:
        yield 0, _through(result, lambda t: t * number)


def mirrored(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The operand of the other sign."""
    yield 0, Use(turns=frozenset(-t for t in result.turns), near=frozenset(-t for t in result.near))


def folded(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The operand without its sign: it turns at 0, and on either side where the result does."""
    either = {sign * t for t in result.turns for sign in (-1, 1)}
    yield 0, Use(turns=frozenset(either | {0.0}), near=frozenset(s * t for t in result.near for s in (-1, 1)))


def before(inverse: Callable[[float], float]) -> Reading:
    """The operand of a function that has an inverse."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        yield 0, _through(result, inverse)

    return read


def _handed_on(result: Use) -> Use:
    return replace(result.behind(), turns=result.turns, near=result.near)


def _through(result: Use, inverse: Callable[[float], float]) -> Use:
    """The use of what a function is taken of, after which comes rounding."""
    found = []
    for number in result.turns | result.near:
        try:
            found.append(inverse(number))
        except (ValueError, ZeroDivisionError, OverflowError):
            continue  # no operand gives this number
    return turning(found, exact=False)
