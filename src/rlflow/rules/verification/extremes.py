"""Numbers that show what a rule assumes: some are not finite, others so large or small that orders of products matter.

Two things are told apart from a difference of meaning. Where the source itself rounds away what it is given, as
(a + b) - a does with a far larger than b, the target may keep it: two sides that differ in float64 as well are not
compared. And where sums of finite numbers overflow in one order alone, as 3e38 + 3e38 - 3e38 does, the numbers were
at the end of their range: huge ones are drawn such that nothing in the source comes near it.

Which of its elements a pool takes for the largest, if one is NaN, depends on the layout that ONNX Runtime keeps the
image in, and that on the processor. So a rule about such a pool assumes that values are finite, whatever trials say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rlflow.ops.blocking import BLOCKING
from rlflow.ops.domain import Array
from rlflow.ops.float_batch import FloatBatch
from rlflow.ops.registry import having
from rlflow.rules.certificate import FINITE, MODERATE
from rlflow.rules.verification.batches import batches, in_double, on_the_way, outputs_of
from rlflow.rules.verification.settings import Trial
from rlflow.rules.verification.sides import Sides

_DRAWS, _TRIALS = 96, 4
"""The draws that numpy computes together, and those of extremes that ONNX Runtime runs."""

_SPECIAL = (0.0, 100.0, -100.0, np.nan, np.inf, -np.inf)
_MAGNITUDES = (1e-43, 1e-40, 1e-20, 1.0, 1e15, 1e25)
"""Subnormal to huge: most pairs of them may be multiplied, and of most three some order may not. The least has two
digits, so that a mean loses some of them where a sum does not."""

_FAR_FROM_OVERFLOW = 1e34
_ACCURATE, _INACCURATE = 1e-4, 1e-2
_LEAST = float(np.finfo(np.float32).tiny)


def assumed(case: Sides, rng: np.random.Generator) -> Iterator[str]:
    """Yield what a case shows that the rule assumes, computed by numpy in float32, many draws at once."""
    special = batches(case.instance, lambda shape: _special(shape, rng))
    if _largest_in_pools(case) or _differ_where_not_finite(case, special):
        yield FINITE
    if _differ_where_extreme(case, batches(case.instance, lambda shape: _extreme(shape, rng))):
        yield MODERATE


_LARGEST_IN_POOLS = having(lambda traits: traits.windowed and not traits.accumulates) & BLOCKING.keys()


def _largest_in_pools(case: Sides) -> bool:
    return any(step.op in _LARGEST_IN_POOLS for side in (case.source, case.target) for step in side.steps)


def _special(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """In half of the draws, a third of the elements is special; in the others, all are ordinary."""
    numbers = rng.uniform(0.5, 2.0, (_DRAWS, *shape)) * rng.choice((-1.0, 1.0), (_DRAWS, *shape))
    chosen = (rng.random((_DRAWS, *shape)) < 0.3) & (rng.random((_DRAWS, *(1 for _ in shape))) < 0.5)
    return np.where(chosen, rng.choice(_SPECIAL, (_DRAWS, *shape)), numbers)


def _extreme(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Each tensor has one magnitude, and elements that are close to it."""
    scale = rng.choice(_MAGNITUDES, (_DRAWS, *(1 for _ in shape)))
    return scale * rng.uniform(0.5, 2.0, (_DRAWS, *shape)) * rng.choice((-1.0, 1.0), (_DRAWS, *shape))


def _differ_where_not_finite(case: Sides, values: Sequence[Array]) -> bool:
    source, target = (outputs_of(side, values) for side in (case.source, case.target))
    return any(unlike(a, b).any() for a, b in zip(source, target, strict=True))


def unlike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The elements of which one is NaN, or an infinity, and the other is not."""
    infinite = np.isinf(a) | np.isinf(b)
    return np.asarray((np.isnan(a) != np.isnan(b)) | (infinite & (a != b) & ~(np.isnan(a) & np.isnan(b))))


def _differ_where_extreme(case: Sides, values: Sequence[Array]) -> bool:
    usual = _usual(case, values)
    sides = zip(outputs_of(case.source, values), outputs_of(case.target, values), strict=True)
    return any((usual & ~are_close(target, source)).any() for source, target in sides)


def _usual(case: Sides, values: Sequence[Array]) -> np.ndarray:
    """The draws that the source computes far from overflow and accurately, and whose sides are alike in float64."""
    double = in_double(values)
    inside = on_the_way(case.source, len(case.instance.types))
    usual = np.ones(_DRAWS, bool)
    for single, exact in zip(outputs_of(inside, values), outputs_of(inside, double), strict=True):
        far = np.isfinite(single) & (np.abs(exact) < _FAR_FROM_OVERFLOW)
        usual &= far.reshape(len(far), -1).all(axis=1) & are_close(single, exact, _ACCURATE)
    for exact, other in zip(outputs_of(case.source, double), outputs_of(case.target, double), strict=True):
        usual &= are_close(other, exact, _ACCURATE)
    return usual


def extreme_trials(case: Sides, rng: np.random.Generator) -> Iterator[Trial]:
    """Yield trials of tensors of very different magnitudes, subnormal ones among them, that the source takes."""
    values = batches(case.instance, lambda shape: _extreme(shape, rng))
    for draw in np.flatnonzero(_usual(case, values))[:_TRIALS]:
        taken = (v.values[draw % len(v.values), ...] if isinstance(v, FloatBatch) else v for v in values)
        typed = zip(taken, case.instance.types.values(), strict=True)
        values_of_draw = tuple(value.astype(tensor_type.dtype, copy=False) for value, tensor_type in typed)
        yield Trial(case, values_of_draw, "very large and very small numbers")


def are_close(values: np.ndarray, reference: np.ndarray, tolerance: float = _INACCURATE) -> np.ndarray:
    """The draws in which all values are finite, and off by no more than this share of the largest reference.

    What is subnormal has fewer digits than others: by less than the least normal number, all values are close.
    """
    flat, wanted = (v.reshape(len(v), -1).astype(np.float64) for v in (values, reference))
    with np.errstate(invalid="ignore"):
        off = np.abs(flat - wanted).max(axis=1, initial=0.0)
    return np.asarray(off <= tolerance * np.abs(wanted).max(axis=1, initial=0.0) + _LEAST)
