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
class Estimate:
    """A median with its 95 % bootstrap interval, which has no width for one value."""

    value: float
    ci95_low: float
    ci95_high: float

    @property
    def ci95(self) -> tuple[float, float]:
        """The interval as a pair (low, high)."""
        return self.ci95_low, self.ci95_high


def estimate(values: Sequence[float] | np.ndarray, *, seed: int = 0) -> Estimate:
    """Return the median of `values` (n,) and its interval. Raises `ValueError` if empty or not finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"an estimate needs finite values, got {array.tolist()}")
    return Estimate(float(np.median(array)), *median_ci95(array, seed=seed))


def ratio(reference_ms: np.ndarray, other_ms: np.ndarray, *, seed: int = 0) -> Estimate:
    """Return the median over rounds of reference/other and its interval; both arrays are (rounds,).

    Above 1, the other model is faster.
    """
    reference_ms, other_ms = np.asarray(reference_ms, float), np.asarray(other_ms, float)
    if reference_ms.shape != other_ms.shape or reference_ms.ndim != 1:
        raise ValueError(f"rounds must be paired: shapes {reference_ms.shape} and {other_ms.shape}")
    return estimate(reference_ms / other_ms, seed=seed)


def beyond_noise(ratio: Estimate) -> bool:
    """Return True if a difference counts: it is at least 2 %, and 1 lies outside the interval."""
    return abs(ratio.value - 1) >= NOISE and not ratio.ci95_low <= 1 <= ratio.ci95_high
