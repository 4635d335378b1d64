"""The trust that V's own word for its errors deserves, and the factor that puts it right.

V reads of each token the standard deviation of its error (`TokenReading.sigma`). If errors were normal, half of them
would be below 0.67 of it, and 95 % below 1.96. What was learned on the training episodes is too sure of others, so
sigma is multiplied by one factor that is fitted on held-out episodes. Most of their tokens are in the training episodes
too, and V is surer of these than of what it has not seen; only the others tell how sure it may be.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import norm

from rlflow.representation.token_rollouts import TokenEpisode
from rlflow.world_model.match_level.diagnostics import Labels, labels
from rlflow.world_model.match_level.token_encoder import TokenReading

NOMINAL = (0.5, 0.8, 0.9, 0.95)


def relative_errors(reading: TokenReading, known: Labels) -> np.ndarray:
    """(N,) the errors of V in units of its own sigma."""
    error = np.arcsinh(known.saving) - reading.saving.double().numpy()[known.token]
    return error / reading.sigma.double().numpy()[known.token]


def unseen(held_out: Sequence[TokenEpisode], training: Sequence[TokenEpisode]) -> Labels:
    """The tokens that held-out episodes show and the training episodes do not, each once."""
    known = labels(held_out)
    first = np.unique(known.token, return_index=True)[1]
    return known.rows(first[~np.isin(known.token[first], labels(training).token)])


def coverage(errors: np.ndarray) -> dict[str, float]:
    """The share of errors (N,) that are as small as they should be in 50, 80, 90 and 95 % of all cases."""
    return {
        f"coverage_{100 * share:.0f}": float((np.abs(errors) <= norm.ppf(0.5 + share / 2)).mean()) for share in NOMINAL
    }


def calibration_factor(errors: np.ndarray) -> float:
    """Return the factor of sigma that brings the coverage nearest to the nominal shares.

    Each nominal share has a factor that fits it exactly; of these, the one with the least sum of absolute deviations
    over all shares. 1 where there are no errors.
    """
    if not len(errors):
        return 1.0
    size = np.abs(errors)
    factors = [float(np.quantile(size, share) / norm.ppf(0.5 + share / 2)) for share in NOMINAL]
    return min(filter(None, factors), key=lambda factor: _deviation(size / factor), default=1.0)


def coverages(errors: np.ndarray, seed: int) -> dict[int, tuple[float, float]]:
    """Return the share of errors (N,) within each nominal one, in percent: with a fitted factor, and without one.

    Each half of the errors is divided by the factor that fits the other half, so that no error judges itself. Empty
    where there are fewer than two.
    """
    if len(errors) < 2:
        return {}
    first, second = np.array_split(np.random.default_rng(seed).permutation(errors), 2)
    fitted = np.concatenate([first / calibration_factor(second), second / calibration_factor(first)])
    pairs = zip(NOMINAL, coverage(fitted).values(), coverage(errors).values(), strict=True)
    return {round(100 * share): (calibrated, raw) for share, calibrated, raw in pairs}


def _deviation(errors: np.ndarray) -> float:
    return sum(abs(actual - share) for actual, share in zip(coverage(errors).values(), NOMINAL, strict=True))
