"""The numbers that an operator computes with: floats, or an exact finite field in which equality can be decided.

Every operator is defined once, over the small algebra below. Over floats it is the reference interpreter;
over the field it is the arithmetic in which substitution rules are generated and verified: two expressions
that are equal as rational functions agree at every point, and two that are not disagree at a random point
except with a probability of degree / p (Schwartz and Zippel).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

Array = Any
"""A value of the domain: `np.ndarray` for floats, `FieldArray` for the field (`ops/field.py`)."""


class Domain(ABC):
    """The algebra that operators are written in. Arguments broadcast as numpy's do."""

    @abstractmethod
    def constant(self, value: float) -> Array: ...

    @abstractmethod
    def structural(self, function: Callable[..., np.ndarray], *values: Array) -> Array:
        """Move elements about: the same function on whatever an element is made of."""

    @abstractmethod
    def add(self, a: Array, b: Array) -> Array: ...

    @abstractmethod
    def multiply(self, a: Array, b: Array) -> Array: ...

    @abstractmethod
    def matmul(self, a: Array, b: Array) -> Array: ...

    @abstractmethod
    def sum(self, a: Array, axes: tuple[int, ...]) -> Array:
        """Sum over axes, which are kept with length one."""

    @abstractmethod
    def maximum(self, a: Array, present: np.ndarray, axes: tuple[int, ...]) -> Array:
        """The largest over axes, which are kept with length one, of the elements that are `present`: a mask that
        broadcasts, with one element at least to each maximum.
        """

    @abstractmethod
    def reciprocal(self, a: Array) -> Array: ...

    @abstractmethod
    def exp(self, a: Array) -> Array: ...

    @abstractmethod
    def relu(self, a: Array) -> Array: ...

    @abstractmethod
    def clip(self, a: Array, low: float | None, high: float | None) -> Array:
        """Between two bounds, of which one that is None is the last number of the element type."""

    @abstractmethod
    def whole(self, a: Array, low: int, high: int) -> Array:
        """The nearest whole number between two bounds; of two that are as near, the even one."""

    @abstractmethod
    def function(self, name: str, a: Array) -> Array:
        """An elementwise function of which only its name is known: `erf`, `tanh`, `sqrt`, `log`."""

    @abstractmethod
    def softmax(self, a: Array, axis: int) -> Array: ...

    def negate(self, a: Array) -> Array:
        return self.multiply(a, self.constant(-1.0))

    def subtract(self, a: Array, b: Array) -> Array:
        return self.add(a, self.negate(b))

    def divide(self, a: Array, b: Array) -> Array:
        return self.multiply(a, self.reciprocal(b))

    def mean(self, a: Array, axes: tuple[int, ...]) -> Array:
        count = prod(a.shape[axis] for axis in axes)
        return self.multiply(self.sum(a, axes), self.reciprocal(self.constant(float(count))))


class FloatDomain(Domain):
    """Numpy's floats, in the element type of the operands."""

    def constant(self, value: float) -> np.ndarray:
        return np.asarray(value)

    def structural(self, function: Callable[..., np.ndarray], *values: np.ndarray) -> np.ndarray:
        return function(*values)

    def add(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a + self._like(b, a)

    def subtract(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a - self._like(b, a)

    def multiply(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a * self._like(b, a)

    def divide(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Integers are divided towards zero, as in C and so in ONNX; numpy's own division goes down."""
        if not np.issubdtype(a.dtype, np.integer):
            return a / self._like(b, a)
        quotient, rest = np.divmod(a, b)
        return quotient + ((rest != 0) & ((a < 0) != (b < 0))).astype(a.dtype)

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.matmul(a, b)

    def sum(self, a: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        return a.sum(axis=axes, keepdims=True, dtype=_accumulator(a)).astype(a.dtype)

    def mean(self, a: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        count = np.asarray(prod(a.shape[axis] for axis in axes), dtype=_accumulator(a))
        return self.divide(a.sum(axis=axes, keepdims=True, dtype=_accumulator(a)), count).astype(a.dtype)

    def maximum(self, a: np.ndarray, present: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        return a.max(axis=axes, keepdims=True, where=present, initial=np.finfo(a.dtype).min)

    def reciprocal(self, a: np.ndarray) -> np.ndarray:
        return (1 / a).astype(a.dtype)

    def exp(self, a: np.ndarray) -> np.ndarray:
        return np.exp(a)

    def relu(self, a: np.ndarray) -> np.ndarray:
        return np.maximum(a, np.zeros((), a.dtype))

    def clip(self, a: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
        last = np.finfo(a.dtype)
        bounds = (last.min if low is None else low, last.max if high is None else high)
        return np.minimum(np.maximum(a, np.asarray(bounds[0], a.dtype)), np.asarray(bounds[1], a.dtype))

    def whole(self, a: np.ndarray, low: int, high: int) -> np.ndarray:
        return np.clip(np.rint(a), low, high)

    def function(self, name: str, a: np.ndarray) -> np.ndarray:
        return _FLOAT_FUNCTIONS[name](a.astype(_accumulator(a))).astype(a.dtype)

    def softmax(self, a: np.ndarray, axis: int) -> np.ndarray:
        exponents = a.astype(_accumulator(a))
        powers = np.exp(exponents - exponents.max(axis=axis, keepdims=True))
        return (powers / powers.sum(axis=axis, keepdims=True)).astype(a.dtype)

    @staticmethod
    def _like(b: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Literals take the element type of the tensor that they meet."""
        return b.astype(a.dtype) if b.dtype == np.float64 and a.dtype != np.float64 else b


def _accumulator(a: np.ndarray) -> np.dtype:
    """Half-precision numbers are summed and fed to functions in single precision."""
    return np.dtype(np.float32) if a.dtype.itemsize <= 2 and not np.issubdtype(a.dtype, np.integer) else a.dtype


def _erf(a: np.ndarray) -> np.ndarray:
    from scipy import special  # takes longer to import than all the rest together, and few models fold an Erf

    return special.erf(a)


_FLOAT_FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "erf": _erf,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "log": np.log,
}
