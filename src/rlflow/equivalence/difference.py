"""The differences between the outputs of two models, output by output."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Difference:
    """The difference in one output of one draw.

    `absolute` is the largest difference of an element, `relative` the same over the largest absolute value expected.
    `informative` says that a wrong model would be likely to show here; `problem` is empty when the output agrees.
    """

    output: str
    absolute: float
    relative: float
    informative: bool
    problem: str


def differences(expected: Mapping[str, Any], actual: Mapping[str, Any], tolerance: float) -> list[Difference]:
    """Compare the outputs of one draw, given by name; errors up to `tolerance`, a relative one, are no problem."""
    return [_difference(label, left, right, tolerance) for label, left, right in paired(expected, actual)]


def differences_beyond(
    own: Mapping[str, Any], expected: Mapping[str, Any], actual: Mapping[str, Any], tolerance: float
) -> list[Difference]:
    """Compare the outputs of one draw with those expected; `own` are what the original computes in the same setting.

    A difference is no problem where the original's own is one and at least as large. Where its own has no size, as in
    a NaN or a whole number, the outputs must be the original's in this setting.
    """
    found = differences(expected, actual, tolerance)
    if own is expected:
        return found
    by_output = {each.output: each for each in differences(expected, own, tolerance)}
    same = {each.output for each in differences(own, actual, tolerance) if not each.problem}

    def is_excused(each: Difference) -> bool:
        known = by_output.get(each.output)
        if known is None or not known.problem:
            return False
        return each.output in same if math.isinf(known.relative) else each.relative <= known.relative

    return [replace(each, problem="") if is_excused(each) else each for each in found]


def paired(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield labelled pairs of arrays to compare; sequences and maps give a pair for each element."""
    for name in expected:
        yield from _arrays(name, expected[name], actual[name])


def _arrays(name: str, left: Any, right: Any) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() != right.keys():
            yield f"keys of {name}", np.array(sorted(map(repr, left))), np.array(sorted(map(repr, right)))
        for key in left.keys() & right.keys():
            yield from _arrays(f"{name}[{key!r}]", left[key], right[key])
    elif isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            yield f"length of {name}", np.array(len(left)), np.array(len(right))
            return
        for index, pair in enumerate(zip(left, right, strict=True)):
            yield from _arrays(f"{name}[{index}]", *pair)
    else:
        yield name, np.asarray(left), np.asarray(right)


def errors(expected: np.ndarray, actual: np.ndarray) -> tuple[float, float]:
    """Return the largest difference of two float arrays of one shape, absolute and relative.

    The relative one is over the largest absolute value expected. Both are infinite if the arrays differ in a NaN or an
    infinity; the relative one also if every value expected is zero and another is present.
    """
    left, right = expected.astype(np.float64), actual.astype(np.float64)
    finite = np.isfinite(left)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True) or not np.isfinite(right[finite]).all():
        return math.inf, math.inf
    absolute = float(np.abs(left[finite] - right[finite]).max(initial=0.0))
    scale = float(np.abs(left[finite]).max(initial=0.0))
    return absolute, absolute / scale if scale else (math.inf if absolute else 0.0)


def _difference(output: str, expected: np.ndarray, actual: np.ndarray, tolerance: float) -> Difference:
    informative = _tells(expected)
    if (expected.dtype, expected.shape) != (actual.dtype, actual.shape):
        problem = f"output {output!r} is {_describe(actual)}, should be {_describe(expected)}"
        return Difference(output, math.inf, math.inf, informative, problem)
    if expected.dtype.kind != "f":
        return _exact_difference(output, expected, actual, informative)

    absolute, relative = errors(expected, actual)
    if math.isinf(absolute):
        problem = f"output {output!r} has NaN or infinity where the original has not, or the other way round"
        return Difference(output, math.inf, math.inf, informative, problem)
    problem = f"output {output!r} differs by {relative:.2e} of its largest value, tolerance {tolerance:.2e}"
    return Difference(output, absolute, relative, informative, problem if relative > tolerance else "")


def _exact_difference(output: str, expected: np.ndarray, actual: np.ndarray, informative: bool) -> Difference:
    wrong = int((expected != actual).sum())
    problem = f"output {output!r} ({expected.dtype}) differs in {wrong} of {expected.size} elements" if wrong else ""
    error = math.inf if wrong else 0.0
    return Difference(output, error, error, informative, problem)


def is_informative(outputs: Mapping[str, Any]) -> bool:
    """Return True if a wrong model would be likely to show in one of these outputs, by name."""
    return any(_tells(array) for name in outputs for _, array, _ in _arrays(name, outputs[name], outputs[name]))


def _tells(values: np.ndarray) -> bool:
    """Return True if a wrong model would be likely to show: some value is finite, and not all are the same."""
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values.reshape(-1)
    if finite.size == 0:
        return False
    return bool(finite[0]) if values.size == 1 else bool((finite != finite[0]).any())


def _describe(array: np.ndarray) -> str:
    return f"{array.dtype}{list(array.shape)}"
