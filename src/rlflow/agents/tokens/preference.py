"""In which order the first steps of chains are tried, of those that V holds to be worth a try.

    confident     by the probability alone that an expert takes it
    far_sighted   by that and by what it leads to, on the scale of logarithms
    expected      by the product of both: what is nearly sure but leads to nothing comes last

None is best on all graphs. What closes a way, such as a fusion that saves a little, is often as probable as what opens
one, and comes first in one order and last in another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rlflow.agents.tokens.token_judge import Opinion

_GAIN_WEIGHT = 3.0  # of the logarithm of a gain beside a logit
_LEAST_GAIN = 1e-3  # units; what leads to less is as good as nothing


def _confident(opinion: Opinion) -> np.ndarray:
    return opinion.taken


def _far_sighted(opinion: Opinion) -> np.ndarray:
    return opinion.taken + _GAIN_WEIGHT * opinion.gain


def _expected(opinion: Opinion) -> np.ndarray:
    return -np.logaddexp(0.0, -opinion.taken) + np.log(np.expm1(opinion.gain) + _LEAST_GAIN)


ORDERS: Mapping[str, Callable[[Opinion], np.ndarray]] = {
    "confident": _confident,
    "far_sighted": _far_sighted,
    "expected": _expected,
}


@dataclass(frozen=True)
class Preference:
    """One of `ORDERS`, with noise (R,) for each rule that all its matches share."""

    order: str
    noise: np.ndarray

    def of(self, opinion: Opinion) -> np.ndarray:
        """(M,) float64, the greatest to be tried first."""
        rules = [location.rule for location, _ in opinion.state.matches]
        return ORDERS[self.order](opinion) + self.noise[rules]
