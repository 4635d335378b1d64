"""Subnormal numbers in arrays, told by their bits: a thread that takes them for zero finds them all the same.

subnormal(np.array([1e-40, 1e-30, 0.0], np.float32))         [True, False, False]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import TensorProto


class _Layout(NamedTuple):
    """A float type: the unsigned one of its size, its bits without the sign, and the mantissa's."""

    bits: type
    magnitude: int
    mantissa: int


_LAYOUTS = {
    "float32": _Layout(np.uint32, 2**31 - 1, 2**23 - 1),
    "bfloat16": _Layout(np.uint16, 2**15 - 1, 2**7 - 1),
    "float64": _Layout(np.uint64, 2**63 - 1, 2**52 - 1),
}
"""Without float16: ONNX Runtime makes float32 of it, and there its smallest numbers are normal."""
SMALLEST_NORMAL = {TensorProto.FLOAT: 2.0**-126, TensorProto.BFLOAT16: 2.0**-126, TensorProto.DOUBLE: 2.0**-1022}
_AT_ONCE = 2**18
"""Elements that are looked at together: they stay in the cache."""


def subnormal(values: np.ndarray) -> np.ndarray:
    """Return which numbers are subnormal, bool in the shape of `values`; none of a type that is not looked after."""
    layout = _LAYOUTS.get(values.dtype.name)
    found = np.zeros(values.shape, bool)
    if layout is None:
        return found
    flat, bits = found.reshape(-1), np.ascontiguousarray(values).reshape(-1).view(layout.bits)
    for start in range(0, len(bits), _AT_ONCE):
        magnitudes = bits[start : start + _AT_ONCE] & layout.bits(layout.magnitude)
        # Zero less one is the largest number, so that one comparison tells zeros, too.
        flat[start : start + _AT_ONCE] = magnitudes - layout.bits(1) < layout.bits(layout.mantissa)
    return found


def below(values: np.ndarray, smallest: float) -> np.ndarray:
    """Return which numbers are no zeros, and smaller than a normal number."""
    return (values != 0) & (np.abs(values) < smallest)
