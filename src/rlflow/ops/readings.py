"""Readings: what is known of an operator's operands, by what it makes of them (`ops/use.py` has the words for it).

    Operator("Sqrt", ..., Traits(uses=(defined_on(0.0, inf),)))
    Operator("Gather", ..., Traits(uses=(looks_up(table=0, index=1), carries(0))))

A reading is asked in the order in which the operator lists it, and never looks at the operator's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from rlflow.ops.use import NO_USE, Application, Reading, Use

_POSITIVE = (0.0, inf)
_UNKNOWN_TABLE_ROWS = 2
_HIDING = -1e3
"""A number added before a Softmax that leaves nothing of what it is added to, or a lower one."""


def carries(*places: int) -> Reading:
    """These operands' values are those of the result, only elsewhere, repeated or left out."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        for place in places:
            yield place, result

    return read


def carries_all(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The same of all operands, however many there are."""
    for place in range(node.operands):
        yield place, result


def picks(*places: int) -> Reading:
    """The same of an operator that compares them with each other: where one is NaN, their order decides."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        for place in places:
            yield place, replace(result, is_mixed=True)

    return read


def computes(*places: int) -> Reading:
    """The result is computed of these operands, element by element."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        for place in places or range(node.operands):
            yield place, result.behind()

    return read


def asks(*places: int) -> Reading:
    """These operands are looked at, and the result is not made of them."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        for place in places:
            yield place, NO_USE

    return read


def divides(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The first operand is a dividend: the lowest integer has no quotient by -1, and ONNX Runtime dies of it."""
    numbers = node.numbers(1)
    yield 0, Use(is_dividend=not numbers or -1 in numbers)


def bounds(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The first operand is moved into bounds: what it indexes is still the same table."""
    yield 0, Use(index=result.index)


def bounds_all(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The operands bound each other."""
    for place in range(node.operands):
        yield place, Use(index=result.index)


def averages(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """A sum or mean, which is surely not negative where no term is."""
    if result.domain == _POSITIVE:
        yield 0, Use(domain=_POSITIVE)


def defined_on(low: float, high: float) -> Reading:
    """A function that is defined on an interval alone."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        yield 0, Use(domain=(low, high))

    return read


def looks_up(table: int, index: int) -> Reading:
    """One operand says which rows of another are meant, along the attribute `axis`."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        if max(table, index) < node.operands and not node.is_stored(index):
            shape = node.shape(table)
            rows = shape[node.integer("axis")] if shape else 0
            yield index, Use(index=(0, (rows or _UNKNOWN_TABLE_ROWS) - 1))

    return read


def looks_up_everywhere(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """Operand 1 says which elements of operand 0 are meant, along several axes: the shortest must have them all."""
    if node.operands > 1 and not node.is_stored(1):
        rows = min(node.shape(0), default=0)
        yield 1, Use(index=(0, (rows or _UNKNOWN_TABLE_ROWS) - 1))


def result_shape_at(place: int) -> Reading:
    """The operand is the shape of the result."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        if node.declared_dimensions is not None:
            yield place, Use(sizes=node.declared_dimensions)

    return read


def sequence_lengths_at(place: int) -> Reading:
    """The operand has the lengths of the sequences that the first one holds, at least 1."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        if node.operands > place:
            shape, time = node.shape(0), node.integer("time_axis", "layout")
            yield place, Use(index=(1, max(1, shape[time]) if time < len(shape) else 1))

    return read


def mask_at(place: int) -> Reading:
    """The operand is 1 for what counts and 0 for what does not."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        yield place, Use(is_mask=True)

    return read


def divisor_at(place: int) -> Reading:
    """The operand may not be zero."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        yield place, Use(is_divisor=True)

    return read


def whole_range_at(*places: int) -> Reading:
    """Every value of the operands' integer type is meant: pixels and quantised numbers."""

    def read(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
        for place in places:
            yield place, Use(is_whole=True)

    return read


def converted(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The operand is converted to the element type that the attribute `to` names."""
    target = node.element_type("to")
    yield 0, Use(is_whole=target in ("float32", "float16", "bfloat16", "float64"), is_mask=target == "bool")


def added(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """Operands of a sum, of which one may be a stored number."""
    for place in (0, 1):
        number = node.number(1 - place) if node.operands > 1 else None
        if number is not None:
            yield place, _before_adding(number, result)


def subtracted(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """Operands of a difference, of which one may be a stored number; 1 - mask is the complement of a mask."""
    if node.operands < 2:
        return
    left, right = node.number(0), node.number(1)
    if right is not None:
        yield 0, _before_adding(-right, result)
    if left == 1 and result.is_complement:
        yield 1, Use(is_mask=True)


def _before_adding(number: float, result: Use) -> Use:
    """Return the use of a value whose sum with a number is used so."""
    if result.is_mask or result.is_complement:  # (m - 1) * -1e4
        return Use(is_mask=number == -1)
    low, high = result.domain
    index = None
    if result.index is not None:
        least, most = (int(end - number) for end in result.index)
        index = (max(least, 0), max(most, 0))
    return Use(index, (low if number >= 0 and low == 0 else low - number, high - number))


def multiplied(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """Operands of a product, of which one may be a stored number, such as what hides in a Softmax."""
    for place in (0, 1):
        number = node.number(1 - place) if node.operands > 1 else None
        if number is None:
            continue
        if number <= _HIDING:
            yield place, Use(is_complement=True)
        elif number > 0 and result.domain == _POSITIVE:
            yield place, Use(domain=_POSITIVE)


def divided(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The dividend above a stored number."""
    number = node.number(1) if node.operands > 1 else None
    if number is not None and number > 0 and result.domain == _POSITIVE:
        yield 0, Use(domain=_POSITIVE)


def raised(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The base of a power, which may be negative under a stored whole exponent alone."""
    if node.operands < 2:
        return
    exponent = node.number(1)
    if exponent is None or not exponent.is_integer():
        yield 0, Use(domain=_POSITIVE)


def counted_to_depth(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The first operand counts up to a depth, which is the second one."""
    depth = node.number(1) if node.operands > 1 else None
    if depth is not None:
        yield 0, Use(index=(0, max(int(depth), 1) - 1))


def compared(node: Application, result: Use) -> Iterator[tuple[int, Use]]:
    """The first operand is a mask where it is compared with 0 or 1."""
    number = node.number(1) if node.operands > 1 else None
    if number is not None and number in (0, 1):
        yield 0, Use(is_mask=True)
