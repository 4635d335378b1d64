"""In which order rewrites are tried as first steps of chains and as their next ones, of those worth a try.

    confident     by the probability alone that an expert takes it
    far_sighted   the first step by that and by what it leads to, on the scale of logarithms; the next ones as above
    patient       by the probability times what it leads to beyond what it saves by itself

None is best on all graphs. What closes a way, such as a fusion that saves a little, is often as probable as what opens
one. With patience it comes last: what it saves can still be had when the ways are walked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rlflow.agents.match_level.scorers import Scores

_GAIN_WEIGHT = 3.0  # of the logarithm of a gain beside a logit
_LEAST_GAIN = 1e-3  # units; what leads to less is as good as nothing


def _confident(scores: Scores) -> np.ndarray:
    return scores.taken


def _far_sighted(scores: Scores) -> np.ndarray:
    return scores.taken + _GAIN_WEIGHT * scores.gain


def _patient(scores: Scores) -> np.ndarray:
    log_probability = -np.logaddexp(0.0, -scores.taken)
    later = np.maximum(np.expm1(scores.gain) - np.maximum(scores.saving, 0.0), 0.0)
    return log_probability + np.log(later + _LEAST_GAIN)


class Order(NamedTuple):
    """Scores of all matches (M,), the greatest to be tried first: as the first step of a chain, and as its next one."""

    first: Callable[[Scores], np.ndarray]
    following: Callable[[Scores], np.ndarray]


ORDERS: Mapping[str, Order] = {
    "confident": Order(_confident, _confident),
    "far_sighted": Order(_far_sighted, _confident),
    "patient": Order(_patient, _patient),
}


@dataclass(frozen=True)
class Preference:
    """One of `ORDERS`, with noise (R,) on first steps for each rule that all its matches share."""

    order: str
    noise: np.ndarray

    def first(self, scores: Scores) -> np.ndarray:
        """(M,) float64, the greatest to be tried first."""
        rules = [location.rule for location, _ in scores.state.matches]
        return ORDERS[self.order].first(scores) + self.noise[rules]

    def following(self, scores: Scores) -> np.ndarray:
        """(M,) float64, the greatest to be tried first where a chain goes on."""
        return ORDERS[self.order].following(scores)
