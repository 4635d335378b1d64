"""A test of which of two models is faster, asked again after every round, without false alarms for asking often.

    decisions(original, candidate)[-1]      logarithms of times (rounds, 2): a round times each model twice
                                            "faster", "slower", "same" or "undecided"

The four sessions of a round come in an order drawn at random. If both models were the same, any two of the four times
would be the candidate's with equal chance, however the machine drifts, stalls or spreads. So bet in each round on which
two they are, "faster" on the shortest, by a softmax over the six pairs, whose sums of logarithms are s1 to s6, sc the
candidate's:

    factor = 1 - stake + stake * 6 exp(-l sc) / (exp(-l s1) + ... + exp(-l s6))          l > 0

The mean of the factor over the six cases is exactly 1, so that the product over rounds is a fair game, and the chance
that it ever reaches 1/e is at most e (J. Ville, 1939; in today's words it is an e-process: A. Ramdas et al.,
"Game-theoretic statistics and safe anytime-valid inference", 2023). A factor lies between 1 - stake and 1 + 5 stake,
whatever the times are, so that an outlier weighs no more than any clear round. The product is averaged over several l,
since nobody knows the noise beforehand, and "slower" is bet on in the same way, with l < 0. With the candidate's times
multiplied by r, it is a bet against "the original takes r times as long", which gives an interval for r that holds
after every round.

The original's two times are also a control: what looks like a difference between a model and itself raises the bar.

The invariant: of models that are the same, at most the share `SequentialTest.error` is ever called faster or slower,
whenever one stops. For "same", and for the interval, times are taken to differ by a factor alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

Decision = Literal["faster", "slower", "same", "undecided"]
# In units of the largest spread: so far out, each round is won, or lost, to the last digit.
_FAR = 40.0


@dataclass(frozen=True)
class SequentialTest:
    """The settings of a test.

    `error` is the largest probability of an interval that misses, and so of a difference that is not there. Models
    whose latencies differ by less than the share `margin` count as the same. `spreads` are the relative differences,
    1/l in the formula, at which bets tell models apart; the best one is about the noise of a round. `stake` is the part
    of what was won that is bet again: the less, the less a stalled session spoils.
    """

    error: float = 0.01
    margin: float = 0.01
    spreads: tuple[float, ...] = (0.005, 0.02, 0.08)
    stake: float = 0.8

    @property
    def bar(self) -> float:
        """The logarithm of what a bet must have won, half of the error being for either direction."""
        return math.log(2 / self.error)


DEFAULT_TEST = SequentialTest()


def decisions(original: np.ndarray, candidate: np.ndarray, test: SequentialTest = DEFAULT_TEST) -> np.ndarray:
    """Return the decision after every round, (..., rounds), of which the first that is not "undecided" counts.

    original, candidate: (..., rounds, 2), logarithms of times.
    """
    bar = _bar(original, test)
    margin = math.log1p(test.margin)
    faster = log_evidence(leads(original, candidate), test) >= bar
    slower = log_evidence(leads(candidate, original), test) >= bar
    not_faster = log_evidence(leads(candidate, original - margin), test) >= bar
    not_slower = log_evidence(leads(original, candidate - margin), test) >= bar
    return np.select([faster, slower, not_faster & not_slower], ["faster", "slower", "same"], "undecided")


def interval(original: np.ndarray, candidate: np.ndarray, test: SequentialTest = DEFAULT_TEST) -> tuple[float, float]:
    """Return the logarithms of the original's time over the candidate's that are not ruled out, as (low, high).

    original, candidate: (rounds, 2), logarithms of times. Both ends are infinite while no outcome could win enough.
    """
    bar = float(_bar(original, test)[-1])
    return _ruled_out_up_to(original, candidate, bar, test), -_ruled_out_up_to(candidate, original, bar, test)


def leads(slow: np.ndarray, fast: np.ndarray) -> np.ndarray:
    """Return what the pair of `fast` is ahead of each other pair of times, (..., rounds, 5).

    slow, fast: (..., rounds, 2), logarithms of times. Four pairs are one of each, the fifth is that of `slow`.
    """
    one_of_each = slow[..., :, None] - fast[..., None, :]
    mixed = one_of_each.reshape(*slow.shape[:-1], 4)
    return np.concatenate([mixed, slow.sum(axis=-1, keepdims=True) - fast.sum(axis=-1, keepdims=True)], axis=-1)


def log_evidence(ahead: np.ndarray, test: SequentialTest = DEFAULT_TEST) -> np.ndarray:
    """Return the logarithm, after every round, of what the bets on the pair that is ahead of the others have won.

    ahead: (..., rounds, others), see `leads`. Returns (..., rounds). It never falls when a lead grows.
    """
    by_spread = [np.cumsum(_log_factor(ahead / spread, test.stake), axis=-1) for spread in test.spreads]
    return np.logaddexp.reduce(by_spread, axis=0) - math.log(len(test.spreads))


def _log_factor(ahead: np.ndarray, stake: float) -> np.ndarray:
    """The logarithm of a round's factor: of the stake, the number of pairs over 1 + sum(exp(-lead)) comes back."""
    won = math.log(ahead.shape[-1] + 1) - np.logaddexp.reduce(-ahead, axis=-1, initial=0.0)
    return np.log1p(stake * np.expm1(won))


def _bar(original: np.ndarray, test: SequentialTest) -> np.ndarray:
    """The logarithm of what a bet must have won: the more, the more the original seems to differ from itself."""
    control = original[..., :1] - original[..., 1:]
    seen = np.maximum(log_evidence(control, test), log_evidence(-control, test))
    return test.bar + np.maximum(seen, 0.0)


def _ruled_out_up_to(slow: np.ndarray, fast: np.ndarray, bar: float, test: SequentialTest) -> float:
    """The largest lead of `fast` against which enough was won, minus infinity if there is none."""

    from scipy.optimize import brentq  # takes as long to import as all that optimising a small model needs

    def won(lead: float) -> float:
        return float(log_evidence(leads(slow, fast + lead), test)[-1]) - bar

    far = _FAR * max(test.spreads)
    low, high = float(slow.min() - fast.max()) - far, float(slow.max() - fast.min()) + far
    return float(brentq(won, low, high)) if won(low) > 0 else -math.inf
