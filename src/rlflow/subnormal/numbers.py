"""Numbers of next to nothing in arrays, told by their bits: a thread that takes them for zero finds them all the same.

subnormal(np.array([1e-40, 1e-35, 0.0], np.float32))         [True, False, False]
below(np.array([1e-40, 1e-35, 0.0], np.float32), 1e-31)      [True, True, False]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from onnx import TensorProto


class _Layout(NamedTuple):
    """A float type, the unsigned one of its size, and all bits but the sign."""

    dtype: Any
    bits: Any
    magnitude: int


_LAYOUTS = {
    "float32": _Layout(np.float32, np.uint32, 2**31 - 1),
    "bfloat16": _Layout(ml_dtypes.bfloat16, np.uint16, 2**15 - 1),
    "float64": _Layout(np.float64, np.uint64, 2**63 - 1),
}
"""Without float16: ONNX Runtime makes float32 of it, and there its smallest numbers are normal."""
SMALLEST_NORMAL: Mapping[int, float] = {
    TensorProto.FLOAT: 2.0**-126,
    TensorProto.BFLOAT16: 2.0**-126,
    TensorProto.DOUBLE: 2.0**-1022,
}
_AT_ONCE = 2**18
"""Elements that are looked at together: they stay in the cache."""


def below(values: np.ndarray, limit: float) -> np.ndarray:
    """Return which numbers are smaller than a normal one and not zero, bool in the shape of `values`.

    There are none of a type that is not looked after, and none below what the type takes for zero.
    """
    layout, found = _LAYOUTS.get(values.dtype.name), np.zeros(values.shape, bool)
    if layout is None or not np.asarray(limit, layout.dtype):
        return found
    flat, bits = found.reshape(-1), np.ascontiguousarray(values).reshape(-1).view(layout.bits)
    # Floats without their sign have the order of their bits. Zero less one is the largest number of all.
    one, mask = layout.bits(1), layout.bits(layout.magnitude)
    last = np.asarray(limit, layout.dtype).view(layout.bits) - one
    for start in range(0, len(bits), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        flat[part] = (bits[part] & mask) - one < last
    return found


def subnormal(values: np.ndarray) -> np.ndarray:
    """Return which numbers are subnormal, as `below` does."""
    layout = _LAYOUTS.get(values.dtype.name)
    return below(values, 0.0 if layout is None else float(ml_dtypes.finfo(layout.dtype).smallest_normal))
