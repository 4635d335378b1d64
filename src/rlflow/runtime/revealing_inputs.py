"""Inputs that tell models apart: those that a model is for, with numbers among them at which something else begins.

Ordinary inputs (`rlflow.runtime.inputs`) are what a model runs on every day, and two models may agree there and differ
beyond a bound, at a tie, on negative integers or at NaN. So inputs are drawn in three manners, in turn:

    inside   ordinary numbers, an eighth of them at the turning points of the model (`rlflow.ops.turns`), a step below
             them and a step above; integers over their whole range, with its edges
    wide     the same, so much larger that they reach the bounds behind
    stray    the same outside of the domains that the model is made for, half of them halves, so that there are ties

A turning point that is reached through rounding is never drawn itself, where rounding would decide, but numbers on both
of its sides. NaN and infinities are inputs of their own (`exceptional_inputs`): whatever they meet becomes one of them.

Invariant: a model that runs on ordinary inputs is not brought to its end by these: what may be a size or a number of
times stays small, an index within its table, and no integer is divided by 0, nor the lowest one by -1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from onnx import ModelProto

from rlflow.ops.use import Use
from rlflow.runtime.inputs import DEFAULT_DIMENSION, draw_inputs, use_of

_MANNERS = 3
_TURNING_SHARE = 8
"""One element in so many lies at a turning point, and at least one if there are any."""
_FARTHEST = 100.0
"""The largest number by which ordinary ones are multiplied so that they reach a bound."""
_FEW = 4
"""Inputs of no more elements have none for numbers that differ from a bound by a step."""
_LARGEST = 1e18
_LARGEST_IN_A_SUM = 1e4
"""A larger number would leave nothing of those to which it is added."""
_MARGIN = 1e-2
"""The distance from a turning point that rounding does not bridge, relative to it."""
_MODERATE = 128
"""Integers that become floats stay below this, or few of their digits would remain after a sum."""


@dataclass(frozen=True)
class Manner:
    """The manner in which one of the inputs is drawn, by its number; a `loudness` above 1 makes all numbers larger."""

    number: int
    loudness: float = 1.0

    @property
    def is_wide(self) -> bool:
        """True if numbers reach the bounds behind."""
        return self.number % _MANNERS == 1

    @property
    def is_stray(self) -> bool:
        """True if the domains that the model is made for are left."""
        return self.number % _MANNERS == 2


def revealing_inputs(
    model: ModelProto,
    rng: np.random.Generator,
    manner: Manner,
    dimensions: Mapping[str, int] | None = None,
    *,
    default_dimension: int = DEFAULT_DIMENSION,
    uses: Mapping[str, Use],
) -> dict[str, np.ndarray]:
    """Draw one array for each required input of `model`, by name; raises as `draw_inputs` does.

    `uses` are those of the model (`rlflow.runtime.input_domains`).
    """
    known = {name: use.required() for name, use in uses.items()} if manner.is_stray else uses
    drawn = draw_inputs(model, rng, dimensions, default_dimension=default_dimension, uses=known)
    return {
        name: _alternating(values, name, manner)
        if values.dtype.kind == "b" and values.size == 1
        else _revealing(values, use_of(name, uses), manner, rng)
        for name, values in drawn.items()
    }


def exceptional_inputs(
    ordinary: Mapping[str, np.ndarray], rng: np.random.Generator, uses: Mapping[str, Use]
) -> list[dict[str, np.ndarray]]:
    """Return copies of inputs with NaN among the floats, with infinity and with its negative, where they say something.

    Where sums make NaN of infinities the order of summation decides, and where numbers are picked that of comparison:
    there models may differ that are rightly taken to be the same.
    """
    floats = {
        name: use_of(name, uses)
        for name, values in ordinary.items()
        if values.dtype.kind == "f" and values.size and use_of(name, uses).index is None
    }
    unpicked = [name for name, use in floats.items() if not use.is_mixed]
    unsummed = [name for name in unpicked if not floats[name].is_summed]
    cases = ((unpicked, math.nan), (unsummed, math.inf), (unsummed, -math.inf))
    return [
        {name: _with(values, [number], rng, most=1) if name in chosen else values for name, values in ordinary.items()}
        for chosen, number in cases
        if chosen
    ]


def _revealing(values: np.ndarray, use: Use, manner: Manner, rng: np.random.Generator) -> np.ndarray:
    if use.sizes is not None or not values.size:
        return values
    if use.index is not None:
        first, last = use.index
        turns = {round(t) + step for t in use.turns for step in (-1, 0, 1)}
        return _with(values, sorted({first, last} | {t for t in turns if first <= t <= last}), rng)
    if values.dtype.kind == "b":
        return values
    if use.is_mask or use.is_complement:
        return _odd_mask(values, rng) if manner.is_stray and values.dtype.kind in "iu" else values
    if values.dtype.kind == "f":
        return _reals(values, use, manner, rng)
    return _integers(values, use, manner, rng)


def _alternating(values: np.ndarray, name: str, manner: Manner) -> np.ndarray:
    """A truth that decides alone: of any three inputs in a row it is true in one, and false in another."""
    return values if manner.is_stray else np.full_like(values, (crc32(name.encode()) + manner.is_wide) % 2)


def _odd_mask(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Numbers about 0 and 1 for what is a mask, as far as its readers tell; the first of a row counts."""
    low = 0 if values.dtype.kind == "u" else -1
    odd = rng.integers(low, 4, values.shape).astype(values.dtype)
    odd[(..., slice(0, 1)) if odd.ndim else ...] = 1
    return odd


def _reals(values: np.ndarray, use: Use, manner: Manner, rng: np.random.Generator) -> np.ndarray:
    dtype, (low, high) = values.dtype, use.domain
    unbounded = not (math.isfinite(low) or math.isfinite(high))
    if unbounded or manner.is_stray:
        values = values * dtype.type(_amplitude(use, manner))
    if manner.is_stray:
        halves = np.round(values * 2) / 2
        ties = (rng.random(values.shape) < 0.5) & ((halves != 0) | (not use.is_divisor))
        values = np.where(ties, halves, values).astype(dtype)
    largest = min(_LARGEST_IN_A_SUM if use.is_summed or use.is_mixed else _LARGEST, float(np.finfo(dtype).max))
    with np.errstate(over="ignore"):
        candidates = [
            t
            for t in _about(use, dtype, with_steps=values.size > _FEW)
            if abs(t) <= largest and (manner.is_stray or low < t < high)
        ]
    if use.is_divisor:
        candidates = [t for t in candidates if abs(t) > _MARGIN]
    return _with(values, candidates, rng)


def _amplitude(use: Use, manner: Manner) -> float:
    reached = max([use.reach, *map(abs, use.turns | use.near)])
    wide = 2 * reached if manner.is_wide and 1 < reached <= _FARTHEST else 1.0
    return wide * manner.loudness


def _about(use: Use, dtype: np.dtype, *, with_steps: bool) -> list[float]:
    """Turning points, numbers a step away from them if there is room for these, and others surely on either side."""
    found: list[float] = []
    for turn in sorted(use.turns):
        exact, away = dtype.type(turn), abs(turn) / 2 + 1
        steps = (np.nextafter(exact, dtype.type(end)) for end in (-np.inf, np.inf))
        found += [float(exact), turn - away, turn + away]
        found += map(float, steps) if with_steps else []
    for turn in sorted(use.near):
        found += [turn + sign * distance for sign in (-1, 1) for distance in _beyond(turn)]
    return found


def _beyond(turn: float) -> tuple[float, float]:
    return _MARGIN * (abs(turn) + 1), abs(turn) / 2 + 1


def _integers(values: np.ndarray, use: Use, manner: Manner, rng: np.random.Generator) -> np.ndarray:
    dtype, shape = values.dtype, values.shape
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if use.is_count:
        return values if manner.loudness == 1 else rng.integers(1, int(min(4 * manner.loudness, high)), shape, dtype)
    if use.is_divisor:
        divisors = [n for n in range(max(low, -9), 10) if n not in (-1, 0)]
        return rng.choice(np.array(divisors, dtype), shape)
    if use.is_whole and dtype.itemsize > 1:
        low, high = max(low, -_MODERATE), min(high, _MODERATE)
    if use.is_dividend:
        low += 1

    turns = sorted({round(t) + step for t in use.turns | use.near for step in (-1, 0, 1)})
    edges = sorted(n for n in {low, low + 1, -1, 0, 1, high - 1, high} if low <= n <= high)
    small = rng.integers(max(low, -9), 10, shape).astype(dtype)
    everywhere = rng.integers(low, high, shape, dtype, endpoint=True)
    at_edges = rng.choice(np.array(edges, dtype), shape)
    mixed = np.asarray(np.choose(rng.integers(0, 3, shape), (small, everywhere, at_edges)), dtype)
    return _with(mixed, [n for n in turns if low <= n <= high], rng)


def _with(
    values: np.ndarray, numbers: Sequence[float], rng: np.random.Generator, most: int | None = None
) -> np.ndarray:
    """A copy with some of the numbers at places by chance, at so many at most; of a single element, sometimes."""
    if not numbers or (values.size == 1 and len(numbers) > 1 and rng.random() < 0.5):
        return values
    wanted = max(1, min(len(numbers), values.size // 2), values.size // _TURNING_SHARE)
    places = rng.permutation(values.size)[: most or wanted]
    changed = values.reshape(-1).copy()
    changed[places] = np.resize(rng.permutation(np.array(numbers, values.dtype)), len(places))
    return changed.reshape(values.shape)
