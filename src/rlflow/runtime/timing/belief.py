"""The probability that a model is faster than another, from what was predicted and from the rounds in which both ran.

    belief = Belief(prior=prior_of(saving_percent=5.0))
    faster, harmful = belief.probabilities(original, candidate)        logarithms of times (rounds, 2)
    belief.decisions(original, candidate)                              "faster" where 0.9 and 0.02 are reached

Three cases are weighed: the candidate is faster, the same, or slower. Before any round each has the probability that
results of such a prediction turned out to have (`Prior`). Rounds speak through the bets of
`rlflow.runtime.timing.sequential`: the sum that a bet on "faster" has won is how much better that case explains the
order of the times than "the same" does. So the probability of each case is its prior times that sum, over all three.
What a model seems to differ from itself is taken off first.

Of a candidate that takes 1 % longer than the original nothing is delivered lightly: with the original's times
multiplied by 1.01, the same sum tells whether the candidate is even slower than that.

Invariant: of models that are the same, the share that is ever called faster is at most 1 / 9 of the prior odds of
"faster" against "the same" (J. Ville's inequality): 2 % where no saving is predicted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from rlflow.runtime.timing.sequential import SequentialTest, decisions, leads, log_evidence

_HALF_PERCENT = 2.0
"""The predicted saving at which half of what a prediction can say is said."""


@dataclass(frozen=True)
class Prior:
    """Probabilities before any round: of a candidate that is faster, of one that is slower, and of one that is slower
    by more than the margin. What is missing to 1 is that it takes the same time.
    """

    faster: float = 0.12
    slower: float = 0.15
    harmful: float = 0.1

    def __post_init__(self) -> None:
        if min(self.faster, self.slower, self.harmful) <= 0 or self.faster + self.slower >= 1 or self.harmful >= 1:
            raise ValueError(f"the probabilities {self} must be positive, and leave some to models that are the same")


NOTHING_PREDICTED = Prior()
_MOST_FASTER = 0.6
"""Of 27 results of a predicted saving of 3 % and more, 19 were faster in rounds (data/results/budgets, 60 s)."""


def prior_of(saving_percent: float) -> Prior:
    """Return what may be believed of a candidate that is predicted to save so much; nothing for a loss."""
    said = 1.0 - 0.5 ** (max(saving_percent, 0.0) / _HALF_PERCENT)
    least = NOTHING_PREDICTED.faster
    return Prior(faster=least + said * (_MOST_FASTER - least))


@dataclass(frozen=True)
class Belief:
    """Delivered is what is faster with at least the probability `faster`, and slower by more than the test's margin
    with at most the probability `harmful`. `test` says how bets are placed, and decides what is slower or the same.
    """

    faster: float = 0.9
    harmful: float = 0.02
    prior: Prior = NOTHING_PREDICTED
    test: SequentialTest = field(default_factory=lambda: SequentialTest(error=0.1))

    def probabilities(self, original: np.ndarray, candidate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the probabilities, after every round, that the candidate is faster, and slower beyond the margin.

        original, candidate: (..., rounds, 2), logarithms of times. Returns two arrays (..., rounds).
        """
        prior, test = self.prior, self.test
        control = original[..., :1] - original[..., 1:]
        spoilt = np.maximum(0.0, np.maximum(log_evidence(control, test), log_evidence(-control, test)))

        faster = math.log(prior.faster) + log_evidence(leads(original, candidate), test) - spoilt
        slower = math.log(prior.slower) + log_evidence(leads(candidate, original), test) - spoilt
        same = np.full_like(faster, math.log(1.0 - prior.faster - prior.slower))
        is_faster = np.exp(faster - np.logaddexp.reduce([faster, slower, same], axis=0))

        longer = original + math.log1p(test.margin)
        better = math.log1p(-prior.harmful) + log_evidence(leads(longer, candidate), test) - spoilt
        worse = math.log(prior.harmful) + np.maximum(0.0, log_evidence(leads(candidate, longer), test))
        return is_faster, np.exp(worse - np.logaddexp(better, worse))

    def decisions(self, original: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """Return the decision after every round, as `sequential.decisions` does."""
        is_faster, is_harmful = self.probabilities(original, candidate)
        decided = decisions(original, candidate, self.test)
        decided = np.where(decided == "faster", "undecided", decided)
        return np.where((is_faster >= self.faster) & (is_harmful <= self.harmful), "faster", decided)
