"""Percentile bootstrap of a median, the interval behind every measured ratio."""

import numpy as np

RESAMPLES = 2000


def median_ci95(values: np.ndarray, *, seed: int = 0, resamples: int = RESAMPLES) -> tuple[float, float]:
    """95 % percentile-bootstrap interval of the median of `values` (n,); of one value, that value twice."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"median_ci95 needs a non-empty vector, got shape {values.shape}")
    draws = np.random.default_rng(seed).integers(0, values.size, (resamples, values.size))
    low, high = np.percentile(np.median(values[draws], axis=1), [2.5, 97.5])
    return float(low), float(high)
