"""Medians, paired ratios and their bootstrap intervals, over seeds or rounds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# A difference that cannot be told from the machine's noise is reported as none (docs/measurements.md, 2).
NOISE = 0.02

RESAMPLES = 2000


def median_ci95(values: np.ndarray, *, seed: int = 0, resamples: int = RESAMPLES) -> tuple[float, float]:
    """Return the 95 % percentile-bootstrap interval of the median of `values` (n,), for n = 1 that value twice."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"median_ci95 needs a non-empty vector, got shape {values.shape}")
    draws = np.random.default_rng(seed).integers(0, values.size, (resamples, values.size))
    low, high = np.percentile(np.median(values[draws], axis=1), [2.5, 97.5])
    return float(low), float(high)


@dataclass(frozen=True)
class Ratio:
    """A ratio of latencies, reference over other: above 1, the other model is faster."""

    value: float
    ci95_low: float
    ci95_high: float

    @property
    def ci95(self) -> list[float]:
        """The interval as a pair [low, high]."""
        return [self.ci95_low, self.ci95_high]


def ratio(reference_ms: np.ndarray, other_ms: np.ndarray, *, seed: int = 0) -> Ratio:
    """Return the median over rounds of reference/other with its 95 % bootstrap interval; both arrays are (rounds,)."""
    reference_ms, other_ms = np.asarray(reference_ms, float), np.asarray(other_ms, float)
    if reference_ms.shape != other_ms.shape or reference_ms.ndim != 1:
        raise ValueError(f"rounds must be paired: shapes {reference_ms.shape} and {other_ms.shape}")
    per_round = reference_ms / other_ms
    low, high = median_ci95(per_round, seed=seed)
    return Ratio(float(np.median(per_round)), low, high)


@dataclass(frozen=True)
class Estimate:
    """A median over `cases` values with its 95 % bootstrap interval, which has no width for one value."""

    value: float
    ci95_low: float
    ci95_high: float
    cases: int

    @property
    def ci95(self) -> list[float]:
        """The interval as a pair [low, high]."""
        return [self.ci95_low, self.ci95_high]


def estimate(values: Sequence[float] | np.ndarray, *, seed: int = 0) -> Estimate:
    """Return the median of `values` (n,) and its interval. Raises `ValueError` if empty or not finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"an estimate needs finite values, got {array.tolist()}")
    return Estimate(float(np.median(array)), *median_ci95(array, seed=seed), cases=array.size)


def beyond_noise(measured: Ratio) -> bool:
    """Return True if a difference counts: it is at least 2 %, and 1 lies outside the interval."""
    return abs(measured.value - 1) >= NOISE and not measured.ci95_low <= 1 <= measured.ci95_high
