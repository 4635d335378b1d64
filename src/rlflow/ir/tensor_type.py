"""The type of a value: an element type and a shape whose dimensions may be symbolic."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

Dimension = int | str | None
"""A number, a symbol that stands for the same number everywhere in the graph, or None: not known."""

FLOAT_DTYPES = frozenset({"float16", "float32", "float64", "bfloat16"})

_BYTES = {"bfloat16": 2, "bool": 1, "complex64": 8, "complex128": 16, "string": 16}


class TensorType(NamedTuple):
    """An element type and a shape.

    `dtype` is numpy's name of the element type, or ONNX's where numpy has none. A `shape` of None has unknown rank.
    """

    dtype: str
    shape: tuple[Dimension, ...] | None

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def is_static(self) -> bool:
        return self.shape is not None and all(isinstance(d, int) for d in self.shape)

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOAT_DTYPES

    @property
    def elements(self) -> int:
        """The number of elements, each unknown dimension counted as one: a lower bound unless the shape is static."""
        return prod(d for d in self.shape if isinstance(d, int)) if self.shape is not None else 1

    @property
    def nbytes(self) -> int:
        return self.elements * item_size(self.dtype)

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.dtype}[*]"
        return f"{self.dtype}[{', '.join('?' if d is None else str(d) for d in self.shape)}]"


def item_size(dtype: str) -> int:
    """Return the bytes of one element; the sub-byte types of ONNX count as one byte."""
    if dtype in _BYTES:
        return _BYTES[dtype]
    try:
        return np.dtype(dtype).itemsize
    except TypeError:
        return 1
