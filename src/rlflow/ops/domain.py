"""What numbers an operator computes with: floats, or an exact finite field in which equality can be decided.

Every operator is defined once, over the small algebra below. Over floats it is the reference interpreter;
over the field it is the arithmetic in which substitution rules are generated and verified: two expressions
that are equal as rational functions agree at every point, and two that are not disagree at a random point
except with a probability of degree / p (Schwartz and Zippel).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from math import prod
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
        """Integers are divided towards zero, as in C and so in ONNX; numpy's own division goes down."""
        if not np.issubdtype(a.dtype, np.integer):
            return a / b
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

    def function(self, name: str, a: np.ndarray) -> np.ndarray:
        return _FLOAT_FUNCTIONS[name](a.astype(_accumulator(a))).astype(a.dtype)

    def softmax(self, a: np.ndarray, axis: int) -> np.ndarray:
        return special.softmax(a.astype(_accumulator(a)), axis=axis).astype(a.dtype)

    @staticmethod
    def _like(b: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Literals take the element type of the tensor that they meet."""
        return b.astype(a.dtype) if b.dtype == np.float64 and a.dtype != np.float64 else b


def _accumulator(a: np.ndarray) -> np.dtype:
    """Half-precision numbers are summed and fed to functions in single precision."""
    return np.dtype(np.float32) if a.dtype.itemsize <= 2 and not np.issubdtype(a.dtype, np.integer) else a.dtype


_FLOAT_FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "erf": special.erf,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "log": np.log,
}


@dataclass(frozen=True, slots=True)
class FieldArray:
    """A batch of tensors over Z_p, each element with its residue modulo q for use as an exponent, and whether it
    is undefined.

    All three parts have shape (batch, *shape); a batch of 1 stands for any. `residue` (int64 in [0, p)); `exponent`
    (int64 in [0, q)), or None behind an exponential, which has no exponent of its own; `undefined` (bool): the
    element depends on a division by zero.
    """

    residue: np.ndarray
    exponent: np.ndarray | None
    undefined: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.residue.shape[1:]


class NestedExponentialError(ValueError):
    """exp(exp(x)) has no meaning in the field model (Mirage, section 5)."""


P = 1048343
Q = 524171
"""P = 2 Q + 1 is a safe prime just under 2**20, with P = Q = 3 mod 4 and P = 7 mod 8, so that -1 is a non-residue, 2 is
a residue, and sums of up to 2**23 products fit into 64 bits."""
_GENERATOR = 4  # of order Q: exp(x) = 4 ** x is well defined for exponents modulo Q
_ROOTS = {P: 5, Q: 6}  # the smallest primitive roots


class FieldDomain(Domain):
    """The exact model. The sign of a number is modelled by its quadratic character, which is multiplicative.

    Values are batches of independent trials. `function` is a random function of the residue, another one for each
    seed; erf and tanh are odd. A sign or a random function makes a wrong equality survive one element with
    probability about one half, so that verification must look at many elements (research/rule_generation.md, 1.1).

    The batch is `repeats` times the trials of `seeds`, trials running fastest: many expressions at once.
    """

    def __init__(self, seeds: Sequence[int], repeats: int = 1) -> None:
        self._seeds = tuple(int(s) for s in seeds)
        self._repeats = repeats

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> FieldArray:
        batch = (len(self._seeds) * self._repeats, *shape)
        return FieldArray(
            rng.integers(0, P, batch, dtype=np.int64),
            rng.integers(0, Q, batch, dtype=np.int64),
            np.zeros(batch, dtype=bool),
        )

    def constant(self, value: float) -> FieldArray:
        """Rationals of small denominators are exact; any other number is a symbol of its own, drawn from its
        digits.
        """
        numerator, denominator = float(value).as_integer_ratio()
        if denominator <= 1 << 12 and abs(numerator) <= 1 << 40:
            residue = np.array([numerator * pow(denominator, -1, P) % P])
            exponent = np.array([numerator * pow(denominator, -1, Q) % Q])
        else:
            residue, exponent = self._symbol(repr(value), P), self._symbol(repr(value) + "e", Q)
        return FieldArray(residue, exponent, np.zeros(residue.shape, dtype=bool))

    def structural(self, function: Callable[..., np.ndarray], *values: FieldArray) -> FieldArray:
        """`function` says where each element goes: it is asked once, about the elements' numbers."""
        numbers, start = [], 0
        for v in values:
            size = prod(v.shape)
            numbers.append(np.arange(start, start + size).reshape(v.shape))
            start += size
        moved = function(*numbers)
        batch = max(v.residue.shape[0] for v in values)

        def take(parts: Sequence[np.ndarray]) -> np.ndarray:
            flat = [np.broadcast_to(p.reshape(p.shape[0], -1), (batch, prod(p.shape[1:]))) for p in parts]
            return (flat[0] if len(flat) == 1 else np.concatenate(flat, axis=1))[:, moved]

        exponents = [v.exponent for v in values if v.exponent is not None]
        return FieldArray(
            take([v.residue for v in values]),
            take(exponents) if len(exponents) == len(values) else None,
            take([v.undefined for v in values]),
        )

    def add(self, a: FieldArray, b: FieldArray) -> FieldArray:
        return self._bilinear(_aligned(np.add), _aligned(np.logical_or), a, b)

    def multiply(self, a: FieldArray, b: FieldArray) -> FieldArray:
        return self._bilinear(_aligned(np.multiply), _aligned(np.logical_or), a, b)

    def matmul(self, a: FieldArray, b: FieldArray) -> FieldArray:
        return self._bilinear(_matmul, _contaminate, a, b)

    def sum(self, a: FieldArray, axes: tuple[int, ...]) -> FieldArray:
        behind = tuple(1 + axis for axis in axes)
        return FieldArray(
            a.residue.sum(axis=behind, keepdims=True) % P,
            None if a.exponent is None else a.exponent.sum(axis=behind, keepdims=True) % Q,
            np.logical_or.reduce(a.undefined, axis=behind, keepdims=True),
        )

    def maximum(self, a: FieldArray, present: np.ndarray, axes: tuple[int, ...]) -> FieldArray:
        """A random function of the multiset of the elements present: what holds for every function of a multiset holds
        for the largest element. That the largest is one of them, and that it grows with each, is not known here.
        """
        behind = tuple(1 + axis for axis in axes)
        gathered = np.where(present, self._scramble("maximum of", a.residue), 0).sum(axis=behind, keepdims=True) % P
        residue = self._scramble("maximum", gathered)
        undefined = np.logical_or.reduce(a.undefined & present, axis=behind, keepdims=True)
        return FieldArray(residue, residue % Q, np.broadcast_to(undefined, residue.shape))

    def reciprocal(self, a: FieldArray) -> FieldArray:
        exponent = None if a.exponent is None else _inverses(Q)[a.exponent]
        return FieldArray(_inverses(P)[a.residue], exponent, a.undefined | (a.residue == 0))

    def exp(self, a: FieldArray) -> FieldArray:
        if a.exponent is None:
            raise NestedExponentialError("an exponential of an exponential cannot be modelled in the field")
        return FieldArray(_powers(_GENERATOR, Q)[a.exponent], None, a.undefined)

    def relu(self, a: FieldArray) -> FieldArray:
        positive = _squares()[a.residue]
        exponent = None if a.exponent is None else np.where(positive, a.exponent, 0)
        return FieldArray(np.where(positive, a.residue, 0), exponent, a.undefined)

    def function(self, name: str, a: FieldArray) -> FieldArray:
        if name in ("erf", "tanh"):
            magnitude = np.minimum(a.residue, P - a.residue)
            value = self._scramble(name, magnitude)
            residue = np.where(a.residue == 0, 0, np.where(a.residue == magnitude, value, P - value)) % P
        else:
            residue = self._scramble(name, a.residue)
        return FieldArray(residue, residue % Q, np.broadcast_to(a.undefined, residue.shape))

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

    def _symbol(self, text: str, modulus: int) -> np.ndarray:
        """A number for each element of the batch (batch,), fixed by the trial's seed."""
        digests = [blake2b(f"{seed}/{text}".encode(), digest_size=8).digest() for seed in self._seeds]
        return np.tile([int.from_bytes(d, "little") % modulus for d in digests], self._repeats)

    def _scramble(self, name: str, x: np.ndarray) -> np.ndarray:
        """A fixed random-looking function of Z_p: two rounds of a 64-bit mixer (Steele et al., SplitMix,
        2014).
        """
        key = self._symbol(name, 1 << 62).astype(np.uint64)
        z = x.astype(np.uint64) + key.reshape(-1, *(1,) * (x.ndim - 1))
        with np.errstate(over="ignore"):
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return ((z ^ (z >> np.uint64(31))) % np.uint64(P)).astype(np.int64)


@cache
def _powers(base: int, count: int, modulus: int = P) -> np.ndarray:
    """base ** i for i below `count`."""
    table = np.ones(count, dtype=np.int64)
    filled = 1
    while filled < count:
        step = min(filled, count - filled)
        table[filled : filled + step] = table[:step] * pow(base, filled, modulus) % modulus
        filled += step
    return table


@cache
def _inverses(modulus: int) -> np.ndarray:
    """The reciprocal of each element of Z_modulus, and 0 for 0."""
    powers = _powers(_ROOTS[modulus], modulus - 1, modulus)
    table = np.zeros(modulus, dtype=np.int64)
    table[powers] = np.roll(powers[::-1], 1)
    return table


@cache
def _squares() -> np.ndarray:
    """Which elements of Z_p are squares of others than 0: the even powers of a primitive root."""
    table = np.zeros(P, dtype=bool)
    table[_powers(_ROOTS[P], P - 1)[::2]] = True
    return table


def _of_rank(value: np.ndarray, rank: int) -> np.ndarray:
    """The value with axes of length one put in behind the batch axis."""
    missing = rank + 1 - value.ndim
    return value.reshape(value.shape[0], *(1,) * missing, *value.shape[1:]) if missing else value


def _aligned(operation: Callable[..., np.ndarray]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    def applied(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        rank = max(a.ndim, b.ndim) - 1
        return operation(_of_rank(a, rank), _of_rank(b, rank))

    return applied


def _matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """numpy's product behind the batch axis, vectors included."""
    if b.ndim == 2:
        return _matmul(a, b[..., None])[..., 0]
    if a.ndim == 2:
        return _matmul(a[:, None, :], b)[..., 0, :]
    return _aligned(np.matmul)(a, b)


def _contaminate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A product is undefined where any of its terms is."""
    return _matmul(a, np.ones(b.shape, dtype=bool)) | _matmul(np.ones(a.shape, dtype=bool), b)
