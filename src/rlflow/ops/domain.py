"""What numbers an operator computes with: floats, or an exact finite field in which equality can be decided.

Every operator is defined once, over the small algebra below. Over floats it is the reference interpreter;
over the field it is the arithmetic in which substitution rules are generated and verified: two expressions
that are equal as rational functions agree at every point, and two that are not disagree at a random point
except with a probability of degree / p (Schwartz and Zippel).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import special

Array = Any
"""A value of the domain: `np.ndarray` for floats, `FieldArray` for the field."""


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
    def reciprocal(self, a: Array) -> Array: ...

    @abstractmethod
    def exp(self, a: Array) -> Array: ...

    @abstractmethod
    def relu(self, a: Array) -> Array: ...

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
        count = np.prod([a.shape[axis] for axis in axes], dtype=int)
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
        return a - b

    def multiply(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a * self._like(b, a)

    def divide(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a // b if np.issubdtype(a.dtype, np.integer) else a / b

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.matmul(a, b)

    def sum(self, a: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        return a.sum(axis=axes, keepdims=True, dtype=a.dtype)

    def mean(self, a: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        return a.mean(axis=axes, keepdims=True, dtype=a.dtype)

    def reciprocal(self, a: np.ndarray) -> np.ndarray:
        return (1 / a).astype(a.dtype)

    def exp(self, a: np.ndarray) -> np.ndarray:
        return np.exp(a)

    def relu(self, a: np.ndarray) -> np.ndarray:
        return np.maximum(a, np.zeros((), a.dtype))

    def function(self, name: str, a: np.ndarray) -> np.ndarray:
        return _FLOAT_FUNCTIONS[name](a)

    def softmax(self, a: np.ndarray, axis: int) -> np.ndarray:
        return special.softmax(a, axis=axis).astype(a.dtype)

    @staticmethod
    def _like(b: np.ndarray, a: np.ndarray) -> np.ndarray:
        """A literal takes the element type of the tensor that it meets."""
        return b.astype(a.dtype) if b.ndim == 0 and b.dtype == np.float64 and a.dtype != np.float64 else b


_FLOAT_FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "erf": special.erf,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "log": np.log,
}


@dataclass(frozen=True, slots=True)
class FieldArray:
    """Elements of Z_p, each with its residue modulo q for use as an exponent, and whether it is undefined.

    `residue` (int64 in [0, p)); `exponent` (int64 in [0, q)), or None behind an exponential, which has no
    exponent of its own; `undefined` (bool): the element depends on a division by zero.
    """

    residue: np.ndarray
    exponent: np.ndarray | None
    undefined: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.residue.shape


class NestedExponentialError(ValueError):
    """exp(exp(x)) has no meaning in the field model (Mirage, section 5)."""


P = 1048343
Q = 524171
"""P = 2 Q + 1 is a safe prime just under 2**20, with P = Q = 3 mod 4 and P = 7 mod 8, so that -1 is a non-residue, 2 is
a residue, and sums of up to 2**23 products fit into 64 bits."""
_GENERATOR = 4  # of order Q: exp(x) = 4 ** x is well defined for exponents modulo Q


class FieldDomain(Domain):
    """The exact model. The sign of a number is modelled by its quadratic character, which is multiplicative.

    `function` is a random function of the residue that `seed` fixes; erf and tanh are odd. A sign or a random
    function makes a wrong equality survive one element with probability about one half, so that verification
    must look at many elements (research/rule_generation.md, 1.1).
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> FieldArray:
        return FieldArray(
            rng.integers(0, P, shape, dtype=np.int64),
            rng.integers(0, Q, shape, dtype=np.int64),
            np.zeros(shape, dtype=bool),
        )

    def constant(self, value: float) -> FieldArray:
        """Rationals of small denominators are exact; any other number is a symbol of its own, drawn from its
        digits.
        """
        shape: tuple[int, ...] = ()
        numerator, denominator = float(value).as_integer_ratio()
        if denominator <= 1 << 12 and abs(numerator) <= 1 << 40:
            residue = numerator * pow(denominator, -1, P) % P
            exponent = numerator * pow(denominator, -1, Q) % Q
        else:
            residue, exponent = self._symbol(repr(value), P), self._symbol(repr(value) + "e", Q)
        return FieldArray(np.full(shape, residue), np.full(shape, exponent), np.zeros(shape, dtype=bool))

    def structural(self, function: Callable[..., np.ndarray], *values: FieldArray) -> FieldArray:
        return FieldArray(
            function(*(v.residue for v in values)),
            None if any(v.exponent is None for v in values) else function(*(v.exponent for v in values)),
            function(*(v.undefined for v in values)),
        )

    def add(self, a: FieldArray, b: FieldArray) -> FieldArray:
        return self._bilinear(np.add, np.logical_or, a, b)

    def multiply(self, a: FieldArray, b: FieldArray) -> FieldArray:
        return self._bilinear(np.multiply, np.logical_or, a, b)

    def matmul(self, a: FieldArray, b: FieldArray) -> FieldArray:
        return self._bilinear(np.matmul, _contaminate, a, b)

    def sum(self, a: FieldArray, axes: tuple[int, ...]) -> FieldArray:
        return FieldArray(
            a.residue.sum(axis=axes, keepdims=True) % P,
            None if a.exponent is None else a.exponent.sum(axis=axes, keepdims=True) % Q,
            a.undefined.any(axis=axes, keepdims=True),
        )

    def reciprocal(self, a: FieldArray) -> FieldArray:
        exponent = None if a.exponent is None else _power(a.exponent, Q - 2, Q)
        return FieldArray(_power(a.residue, P - 2, P), exponent, a.undefined | (a.residue == 0))

    def exp(self, a: FieldArray) -> FieldArray:
        if a.exponent is None:
            raise NestedExponentialError("an exponential of an exponential cannot be modelled in the field")
        return FieldArray(_power(np.full_like(a.exponent, _GENERATOR), a.exponent, P), None, a.undefined)

    def relu(self, a: FieldArray) -> FieldArray:
        positive = _power(a.residue, Q, P) == 1  # Euler's criterion, as Q = (P - 1) / 2
        exponent = None if a.exponent is None else np.where(positive, a.exponent, 0)
        return FieldArray(np.where(positive, a.residue, 0), exponent, a.undefined)

    def function(self, name: str, a: FieldArray) -> FieldArray:
        if name in ("erf", "tanh"):
            magnitude = np.minimum(a.residue, P - a.residue)
            value = self._scramble(name, magnitude)
            residue = np.where(a.residue == 0, 0, np.where(a.residue == magnitude, value, P - value)) % P
        else:
            residue = self._scramble(name, a.residue)
        return FieldArray(residue, residue % Q, a.undefined)

    def softmax(self, a: FieldArray, axis: int) -> FieldArray:
        e = self.exp(a)
        return self.divide(e, self.sum(e, (axis,)))

    def _bilinear(
        self, operation: Callable[..., np.ndarray], undefined: Callable[..., np.ndarray], a: FieldArray, b: FieldArray
    ) -> FieldArray:
        return FieldArray(
            operation(a.residue, b.residue) % P,
            None if a.exponent is None or b.exponent is None else operation(a.exponent, b.exponent) % Q,
            undefined(a.undefined, b.undefined),
        )

    def _symbol(self, text: str, modulus: int) -> int:
        digest = blake2b(f"{self._seed}/{text}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") % modulus

    def _scramble(self, name: str, x: np.ndarray) -> np.ndarray:
        """A fixed random-looking function of Z_p: two rounds of a 64-bit mixer (Steele et al., SplitMix,
        2014).
        """
        z = x.astype(np.uint64) + np.uint64(self._symbol(name, 1 << 62))
        with np.errstate(over="ignore"):
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return ((z ^ (z >> np.uint64(31))) % np.uint64(P)).astype(np.int64)


def _power(base: np.ndarray, exponent: np.ndarray | int, modulus: int) -> np.ndarray:
    result = np.ones_like(base)
    remaining = np.broadcast_to(np.asarray(exponent, dtype=np.int64), base.shape).copy()
    square = base % modulus
    while remaining.any():
        result = np.where(remaining & 1, result * square % modulus, result)
        square = square * square % modulus
        remaining >>= 1
    return result


def _contaminate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A product is undefined where any of its terms is."""
    left = np.matmul(a.astype(np.int64), np.ones(b.shape, dtype=np.int64))
    right = np.matmul(np.ones(a.shape, dtype=np.int64), b.astype(np.int64))
    return (left + right) > 0
