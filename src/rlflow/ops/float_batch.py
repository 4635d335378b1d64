"""Numpy's floats at many points at once: what `FloatDomain` computes, of batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rlflow.ops import batch
from rlflow.ops.domain import Domain, FloatDomain

_FLOATS = FloatDomain()


@dataclass(frozen=True, slots=True)
class FloatBatch:
    """A batch of tensors, `values` (batch, *shape)."""

    values: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape[1:]


class FloatBatchDomain(Domain):
    """Batches in the element type of the operands, float32 or float64."""

    def constant(self, value: float) -> FloatBatch:
        return FloatBatch(np.asarray([value]))

    def structural(self, function: Callable[..., np.ndarray], *values: FloatBatch) -> FloatBatch:
        places = batch.moved(function, [v.shape for v in values])
        return FloatBatch(batch.gathered(_alike(*values), places))

    def add(self, a: FloatBatch, b: FloatBatch) -> FloatBatch:
        return FloatBatch(batch.aligned(np.add, *_alike(a, b)))

    def subtract(self, a: FloatBatch, b: FloatBatch) -> FloatBatch:
        return FloatBatch(batch.aligned(np.subtract, *_alike(a, b)))

    def multiply(self, a: FloatBatch, b: FloatBatch) -> FloatBatch:
        return FloatBatch(batch.aligned(np.multiply, *_alike(a, b)))

    def divide(self, a: FloatBatch, b: FloatBatch) -> FloatBatch:
        return FloatBatch(batch.aligned(np.divide, *_alike(a, b)))

    def matmul(self, a: FloatBatch, b: FloatBatch) -> FloatBatch:
        return FloatBatch(batch.matmul(a.values, b.values))

    def sum(self, a: FloatBatch, axes: tuple[int, ...]) -> FloatBatch:
        return FloatBatch(_FLOATS.sum(a.values, _behind(axes)))

    def mean(self, a: FloatBatch, axes: tuple[int, ...]) -> FloatBatch:
        return FloatBatch(_FLOATS.mean(a.values, _behind(axes)))

    def maximum(self, a: FloatBatch, present: np.ndarray, axes: tuple[int, ...]) -> FloatBatch:
        return FloatBatch(_FLOATS.maximum(a.values, present, _behind(axes)))

    def reciprocal(self, a: FloatBatch) -> FloatBatch:
        return FloatBatch(_FLOATS.reciprocal(a.values))

    def exp(self, a: FloatBatch) -> FloatBatch:
        return FloatBatch(_FLOATS.exp(a.values))

    def relu(self, a: FloatBatch) -> FloatBatch:
        return FloatBatch(_FLOATS.relu(a.values))

    def clip(self, a: FloatBatch, low: float | None, high: float | None) -> FloatBatch:
        return FloatBatch(_FLOATS.clip(a.values, low, high))

    def whole(self, a: FloatBatch, low: int, high: int) -> FloatBatch:
        return FloatBatch(_FLOATS.whole(a.values, low, high))

    def function(self, name: str, a: FloatBatch) -> FloatBatch:
        return FloatBatch(_FLOATS.function(name, a.values))

    def softmax(self, a: FloatBatch, axis: int) -> FloatBatch:
        return FloatBatch(_FLOATS.softmax(a.values, axis + 1))


def _alike(*operands: FloatBatch) -> list[np.ndarray]:
    """Their values in one element type: literals, of float64, take that of the tensors that they meet."""
    dtype = min((v.values.dtype for v in operands), key=lambda d: d.itemsize)
    return [v.values.astype(dtype, copy=False) for v in operands]


def _behind(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis + 1 for axis in axes)
