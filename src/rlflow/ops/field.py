"""The exact domain: integers modulo a prime, in which equality can be decided.

Two expressions of +, x and / that are equal as rational functions are equal modulo P too. Two that are not agree at a
random point with probability at most degree / P (Schwartz and Zippel), so that a few random points decide:

    domain = FieldDomain(seeds=[1, 2, 3])                    # three trials at once
    a, b = domain.draw((2, 2), rng), domain.draw((2, 2), rng)
    domain.add(a, b)                                         # FieldArray: residues (3, 2, 2)

What is no rational function is modelled: exp as a power, whose exponent is a second residue modulo Q; the sign by the
quadratic character; any other function of one element as a random one. What holds for any such function holds for
them; a rule that needs more is refused, though it may be true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from rlflow.ops import batch
from rlflow.ops.domain import Domain


class FieldArray(NamedTuple):
    """A batch of tensors over Z_p, each element with its residue modulo q for use as an exponent, and whether it
    is undefined.

    All three parts have shape (batch, *shape); a batch of 1 stands for any. `residue` (int64 in [0, p)); `exponent`
    (int64 in [0, q)), or None where there is none: behind an exponential, and where none was drawn; `undefined`
    (bool): the element depends on a division by zero. None: all are defined.
    """

    residue: np.ndarray
    exponent: np.ndarray | None = None
    undefined: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.residue.shape[1:]

    def each(self, change: Callable[[np.ndarray], np.ndarray]) -> FieldArray:
        """The same change to all parts."""
        return FieldArray(
            change(self.residue),
            None if self.exponent is None else change(self.exponent),
            None if self.undefined is None else change(self.undefined),
        )

    def whole(self, low: int, high: int) -> FieldArray:
        """Whole numbers between the bounds, chosen by the residues."""
        numbers = low + self.residue % (high - low + 1)
        return FieldArray(numbers % P, None if self.exponent is None else numbers % Q, self.undefined)

    @property
    def marked(self) -> np.ndarray:
        """The residues, and -1 where they are undefined."""
        return self.residue if self.undefined is None else np.where(self.undefined, -1, self.residue)


class NoExponentError(ValueError):
    """exp(x) of an x without exponent: exp(exp(x)) has no meaning in the field model (Mirage, section 5)."""


P = 1048343
Q = 524171
"""P = 2 Q + 1 is a safe prime just under 2**20, with P = Q = 3 mod 4 and P = 7 mod 8, so that -1 is a non-residue, 2 is
a residue, and sums of up to 2**23 products fit into 64 bits."""
_GENERATOR = 4  # of order Q: exp(x) = 4 ** x is well defined for exponents modulo Q
_LAST = float(np.finfo(np.float32).max)
_ROOTS = {P: 5, Q: 6}  # the smallest primitive roots


class FieldDomain(Domain):
    """The exact model. The sign of a number is modelled by its quadratic character, which is multiplicative.

    Values are batches of independent trials. `function` is a random function of the residue, another one for each
    seed; erf and tanh are odd. A sign or a random function makes a wrong equality survive one element with
    probability about one half, so that verification must look at many elements (docs/measurements.md, 5).

    The batch is `repeats` times the trials of `seeds`, trials running fastest: many expressions at once.
    """

    def __init__(self, seeds: Sequence[int] | np.ndarray, repeats: int = 1) -> None:
        self._seeds = np.asarray(seeds, dtype=np.uint64)
        self._repeats = repeats
        self._keys: dict[str, np.ndarray] = {}

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> FieldArray:
        residues = self.draw_residues(shape, rng)
        return FieldArray(residues.residue, rng.integers(0, Q, residues.residue.shape, dtype=np.int64))

    def draw_residues(self, shape: tuple[int, ...], rng: np.random.Generator) -> FieldArray:
        """Without exponents, which only an exponential needs: half the work."""
        return FieldArray(rng.integers(0, P, (len(self._seeds) * self._repeats, *shape), dtype=np.int64))

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
        return FieldArray(residue, exponent)

    def structural(self, function: Callable[..., np.ndarray], *values: FieldArray) -> FieldArray:
        """`function` says where each element goes: it is asked once, about the elements' numbers."""
        places = batch.moved(function, [v.shape for v in values])
        if len(values) == 1:
            return values[0].each(lambda part: batch.gathered([part], places))
        exponents = [v.exponent for v in values if v.exponent is not None]
        return FieldArray(
            batch.gathered([v.residue for v in values], places),
            batch.gathered(exponents, places) if len(exponents) == len(values) else None,
            None
            if all(v.undefined is None for v in values)
            else batch.gathered([undefined(v) for v in values], places),
        )

    def add(self, a: FieldArray, b: FieldArray) -> FieldArray:
        return FieldArray(
            batch.aligned(np.add, a.residue, b.residue) % P,
            None if a.exponent is None or b.exponent is None else batch.aligned(np.add, a.exponent, b.exponent) % Q,
            _either(a, b),
        )

    def multiply(self, a: FieldArray, b: FieldArray) -> FieldArray:
        return FieldArray(
            batch.aligned(np.multiply, a.residue, b.residue) % P,
            None
            if a.exponent is None or b.exponent is None
            else batch.aligned(np.multiply, a.exponent, b.exponent) % Q,
            _either(a, b),
        )

    def matmul(self, a: FieldArray, b: FieldArray) -> FieldArray:
        return FieldArray(
            batch.matmul(a.residue, b.residue) % P,
            None if a.exponent is None or b.exponent is None else batch.matmul(a.exponent, b.exponent) % Q,
            None if a.undefined is None and b.undefined is None else _contaminated(undefined(a), undefined(b)),
        )

    def sum(self, a: FieldArray, axes: tuple[int, ...]) -> FieldArray:
        behind = tuple(1 + axis for axis in axes)
        return FieldArray(
            a.residue.sum(axis=behind, keepdims=True) % P,
            None if a.exponent is None else a.exponent.sum(axis=behind, keepdims=True) % Q,
            None if a.undefined is None else np.logical_or.reduce(a.undefined, axis=behind, keepdims=True),
        )

    def maximum(self, a: FieldArray, present: np.ndarray, axes: tuple[int, ...]) -> FieldArray:
        """A random function of the multiset of the elements present: what holds for every function of a multiset holds
        for the largest element. That the largest is one of them, and that it grows with each, is not known here.
        """
        behind = tuple(1 + axis for axis in axes)
        seen = np.where(present, self._scramble("maximum of", a.residue), 0).sum(axis=behind, keepdims=True) % P
        residue = self._scramble("maximum", seen)
        missing = None if a.undefined is None else np.logical_or.reduce(a.undefined & present, behind, keepdims=True)
        return FieldArray(residue, residue % Q, missing)

    def reciprocal(self, a: FieldArray) -> FieldArray:
        exponent = None if a.exponent is None else _inverses(Q)[a.exponent]
        poles = a.residue == 0
        if a.undefined is not None:
            poles = poles | a.undefined
        return FieldArray(_inverses(P)[a.residue], exponent, poles if poles.any() else None)

    def exp(self, a: FieldArray) -> FieldArray:
        if a.exponent is None:
            raise NoExponentError("an exponential of an exponential cannot be modelled in the field")
        return FieldArray(_powers(_GENERATOR, Q)[a.exponent], None, a.undefined)

    def relu(self, a: FieldArray) -> FieldArray:
        positive = _squares()[a.residue]
        exponent = None if a.exponent is None else np.where(positive, a.exponent, 0)
        return FieldArray(np.where(positive, a.residue, 0), exponent, a.undefined)

    def clip(self, a: FieldArray, low: float | None, high: float | None) -> FieldArray:
        """Some numbers stay, among them the bounds, and each other becomes one of these: which, is a random function of
        the residue. That numbers are ordered is not known here; that a second time changes nothing is.
        """
        ends = [self.constant(last if end is None else end) for end, last in ((low, -_LAST), (high, _LAST))]
        lows, highs = (batch.of_rank(end.residue, a.residue.ndim - 1) for end in ends)
        lot = self._scramble(f"clip {low} {high}", a.residue) % 4
        stays = (lot > 1) | (a.residue == lows) | (a.residue == highs)
        exponent = None
        if a.exponent is not None:
            low_exponents, high_exponents = (batch.of_rank(_exponent(end), a.residue.ndim - 1) for end in ends)
            exponent = np.where(stays, a.exponent, np.where(lot == 0, low_exponents, high_exponents))
        return FieldArray(np.where(stays, a.residue, np.where(lot == 0, lows, highs)), exponent, a.undefined)

    def whole(self, a: FieldArray, low: int, high: int) -> FieldArray:
        """Whole numbers between the bounds stay, and each other element becomes one of these: which, is a random
        function of its residue.
        """
        stays = (low <= a.residue) & (a.residue <= high) | (low <= a.residue - P) & (a.residue - P <= high)
        others = FieldArray(self._scramble(f"whole {low} {high}", a.residue)).whole(low, high).residue
        residue = np.where(stays, a.residue, others)
        exponent = None if a.exponent is None else np.where(stays, a.exponent, residue % Q)
        return FieldArray(residue, exponent, a.undefined)

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

    def _symbol(self, text: str, modulus: int) -> np.ndarray:
        """A number for each element of the batch (batch,), fixed by the trial's seed."""
        return (self._key(text) % np.uint64(modulus)).astype(np.int64)

    def _scramble(self, name: str, x: np.ndarray) -> np.ndarray:
        """A fixed random-looking function of Z_p."""
        return (_mixed(x.astype(np.uint64) + batch.of_rank(self._key(name), x.ndim - 1)) % np.uint64(P)).astype(
            np.int64
        )

    def _key(self, name: str) -> np.ndarray:
        """Return the keys from which the function or symbol of this name is drawn, one for each point (batch,)."""
        if name not in self._keys:
            self._keys[name] = np.tile(_mixed(_mixed(self._seeds) ^ _digest(name)), self._repeats)
        return self._keys[name]


@cache
def _digest(text: str) -> np.uint64:
    return np.uint64(int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little"))


def _mixed(z: np.ndarray) -> np.ndarray:
    """Two rounds of a 64-bit mixer (Steele et al., SplitMix, 2014)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def _exponent(number: FieldArray) -> np.ndarray:
    assert number.exponent is not None
    return number.exponent


def undefined(a: FieldArray) -> np.ndarray:
    """Return where the elements are undefined, (batch, *shape)."""
    return np.broadcast_to(False, a.residue.shape) if a.undefined is None else a.undefined


def _either(a: FieldArray, b: FieldArray) -> np.ndarray | None:
    if a.undefined is None and b.undefined is None:
        return None
    return batch.aligned(np.logical_or, undefined(a), undefined(b))


def _contaminated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A product is undefined where any of its terms is."""
    return batch.matmul(a, np.ones(b.shape, dtype=bool)) | batch.matmul(np.ones(a.shape, dtype=bool), b)


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
    """Mark the elements of Z_p that are squares of others than 0: the even powers of a primitive root."""
    table = np.zeros(P, dtype=bool)
    table[_powers(_ROOTS[P], P - 1)[::2]] = True
    return table
