"""Values that are batches: the same tensor at many points at once, (batch, *shape). A batch of 1 stands for any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

Shape = tuple[int, ...]


def moved(function: Callable[..., np.ndarray], shapes: Sequence[Shape]) -> np.ndarray:
    """Return the origin of each element of the result of a function that only moves elements.

    The origin is a number, counted through all operands of these shapes. The function is asked once, whatever the
    batch.
    """
    numbers, start = [], 0
    for shape in shapes:
        size = prod(shape)
        numbers.append(np.arange(start, start + size).reshape(shape))
        start += size
    return function(*numbers)


def gathered(values: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """The elements of all operands at these places, in every point of the batch."""
    if len(values) == 1:
        return values[0].reshape(len(values[0]), -1).take(places, axis=1)  # much faster than [:, places]
    batch = max(map(len, values))
    flat = [v.reshape(len(v), -1) for v in values]
    alike = [f if len(f) == batch else np.broadcast_to(f, (batch, f.shape[1])) for f in flat]
    return np.concatenate(alike, axis=1).take(places, axis=1)


def of_rank(value: np.ndarray, rank: int) -> np.ndarray:
    """The value with axes of length one put in behind the batch axis."""
    missing = rank + 1 - value.ndim
    return value.reshape(value.shape[0], *(1,) * missing, *value.shape[1:]) if missing else value


def aligned(operation: Callable[..., np.ndarray], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """An operation that broadcasts, on operands of different ranks behind the batch axis."""
    rank = max(a.ndim, b.ndim) - 1
    return operation(of_rank(a, rank), of_rank(b, rank))


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """numpy's product behind the batch axis, vectors included."""
    if b.ndim == 2:
        return matmul(a, b[..., None])[..., 0]
    if a.ndim == 2:
        return matmul(a[:, None, :], b)[..., 0, :]
    return aligned(np.matmul, a, b)
