"""Medians, paired ratios and their bootstrap intervals, over seeds or rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rlflow.runtime.bootstrap import median_ci95
from rlflow.runtime.latency import Ratio, ratio

# paper.md section 6: what machine noise cannot be told from is reported as no difference.
NOISE = 0.02

__all__ = [
    "NOISE",
    "Estimate",
    "Ratio",
    "beyond_noise",
    "estimate",
    "min_max_normalised",
    "paired_ratios",
    "ratio",
]


@dataclass(frozen=True)
class Estimate:
    """A median over `cases` values with its 95 % bootstrap interval; one value has no spread to speak of."""

    value: float
    ci95_low: float
    ci95_high: float
    cases: int

    @property
    def ci95(self) -> list[float]:
        """The interval as a pair [low, high]."""
        return [self.ci95_low, self.ci95_high]


def estimate(values: Sequence[float] | np.ndarray, *, seed: int = 0) -> Estimate:
    """Median of `values` (n,) and its interval. Raises ValueError on none and on non-finite ones."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"an estimate needs finite values, got {array.tolist()}")
    return Estimate(float(np.median(array)), *median_ci95(array, seed=seed), cases=array.size)


def paired_ratios(times_ms: Mapping[str, np.ndarray], reference: str, *, seed: int = 0) -> dict[str, Ratio]:
    """Ratio reference/other of every other entry of `times_ms` (name -> (rounds,)); above 1 is faster."""
    others = (name for name in times_ms if name != reference)
    return {name: ratio(times_ms[reference], times_ms[name], seed=seed) for name in others}


def beyond_noise(measured: Ratio) -> bool:
    """Whether a difference counts: at least 2 %, and 1 lies outside the interval."""
    return abs(measured.value - 1) >= NOISE and not measured.ci95_low <= 1 <= measured.ci95_high


def min_max_normalised(values: np.ndarray) -> np.ndarray:
    """`values` (n,) mapped linearly onto 0..1 (paper Fig. 9); all 0 when they are all equal."""
    span = values.max() - values.min()
    return (values - values.min()) / span if span else np.zeros_like(values)
