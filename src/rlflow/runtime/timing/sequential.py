"""A test of which of two models is faster, asked again after every round, without false alarms for asking often.

    verdict = judge(original_ms, again_ms, candidate_ms)      milliseconds (rounds,), measured together round by round
    verdict.decision                                          "faster", "slower", "same" or "undecided"

A round times the original twice and the candidate once, in an order drawn at random. If all three were the same model,
any of the three times would be the candidate's with equal chance, however the machine drifts, stalls or spreads. So bet
in each round on which time is the candidate's, "faster" on the shortest, by a softmax over their logarithms o, a, c:

    factor = 1 - stake + stake * 3 exp(-l c) / (exp(-l o) + exp(-l a) + exp(-l c))          l > 0

The mean of the factor over the three cases is exactly 1, so that the product over rounds is a fair game, and the chance
that it ever reaches 1/e is at most e (J. Ville, 1939; in today's words it is an e-process: A. Ramdas et al.,
"Game-theoretic statistics and safe anytime-valid inference", 2023). A factor lies between 1 - stake and 1 + 2 stake,
whatever the times are, so that an outlier weighs no more than any clear round. The product is averaged over several l,
since nobody knows the noise beforehand, and "slower" is bet on in the same way, with l < 0. With the candidate's time
multiplied by r, it is a bet against "the original takes r times as long", which gives an interval for r that holds
after every round.

The original's second time is also a control: what looks like a difference between a model and itself raises the bar.

The invariant: of models that are the same, at most the share `SequentialTest.error` is ever called faster or slower,
whenever one stops. For "same", and for the interval, times are taken to differ by a factor alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import brentq

Decision = Literal["faster", "slower", "same", "undecided"]
# In logarithms and in units of the largest spread: so far out, each round is won to the last digit.
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


@dataclass(frozen=True)
class Verdict:
    """The answer after some rounds. Ratios are the original's time over the candidate's: above 1, it is faster.

    `ratio` is a median over rounds; `low` and `high` are 0 and infinite while there are too few rounds to say
    anything. `control` is the median ratio of the original's first time to its second.
    """

    decision: Decision
    ratio: float
    low: float
    high: float
    control: float
    rounds: int

    @property
    def bounded(self) -> bool:
        """True if there were rounds enough for an interval."""
        return math.isfinite(self.high)

    def __str__(self) -> str:
        held = f", interval {self.low:.3f} to {self.high:.3f}" if self.bounded else ""
        rounds = f"{self.rounds} {'round' if self.rounds == 1 else 'rounds'}"
        return f"ratio {self.ratio:.3f}{held}, original against itself {self.control:.3f}, {rounds}"


def judge(
    original_ms: np.ndarray, again_ms: np.ndarray, candidate_ms: np.ndarray, test: SequentialTest = DEFAULT_TEST
) -> Verdict:
    """Decide after these rounds. Raises `ValueError` for arrays that are not (rounds,) positive and finite numbers."""
    times = np.array([original_ms, again_ms, candidate_ms], dtype=np.float64)
    if times.ndim != 2 or not times.size or not (np.isfinite(times) & (times > 0)).all():
        raise ValueError(f"a verdict needs positive times of paired rounds, got {times.tolist()}")
    original, again, candidate = np.log(times)
    leads = np.stack([original - candidate, again - candidate], axis=-1)
    low, high = interval(leads, test)
    return Verdict(
        decision=decisions(leads, test)[-1].item(),
        ratio=math.exp(np.median(leads.mean(axis=-1))),
        low=math.exp(low),
        high=math.exp(high),
        control=math.exp(np.median(original - again)),
        rounds=times.shape[1],
    )


def decisions(leads: np.ndarray, test: SequentialTest = DEFAULT_TEST) -> np.ndarray:
    """Return the decision after every round, (..., rounds), of which the first that is not "undecided" counts.

    leads: (..., rounds, 2), logarithms of the original's two times over the candidate's.
    """
    bar = _bar(leads, test)
    margin = math.log1p(test.margin)
    faster = log_evidence(leads, test) >= bar
    slower = log_evidence(-leads, test) >= bar
    same = (log_evidence(leads + margin, test) >= bar) & (log_evidence(margin - leads, test) >= bar)
    return np.select([faster, slower, same], ["faster", "slower", "same"], "undecided")


def interval(leads: np.ndarray, test: SequentialTest = DEFAULT_TEST) -> tuple[float, float]:
    """Return the logarithms of the original's time over the candidate's that are not ruled out, as (low, high).

    leads: (rounds, 2). Both ends are infinite while no outcome could win enough.
    """
    bar = float(_bar(leads, test)[-1])
    low = _ruled_out_up_to(leads, bar, test)
    return low, -_ruled_out_up_to(-leads, bar, test)


def log_evidence(leads: np.ndarray, test: SequentialTest = DEFAULT_TEST) -> np.ndarray:
    """Return the logarithm, after every round, of what the bets on "the candidate has the least time" have won.

    leads: (..., rounds, references), logarithms of each reference's time over the candidate's. Returns (..., rounds).
    It never falls when a lead grows.
    """
    by_spread = [np.cumsum(_log_factor(leads / spread, test.stake), axis=-1) for spread in test.spreads]
    return np.logaddexp.reduce(by_spread, axis=0) - math.log(len(test.spreads))


def _log_factor(leads: np.ndarray, stake: float) -> np.ndarray:
    """The logarithm of a round's factor: of the stake, the number of models over 1 + sum(exp(-lead)) comes back."""
    won = math.log(leads.shape[-1] + 1) - np.logaddexp.reduce(-leads, axis=-1, initial=0.0)
    return np.log1p(stake * np.expm1(won))


def _bar(leads: np.ndarray, test: SequentialTest) -> np.ndarray:
    """The logarithm of what a bet must have won: the more, the more the original seems to differ from itself."""
    control = leads[..., :1] - leads[..., 1:]
    seen = np.maximum(log_evidence(control, test), log_evidence(-control, test))
    return test.bar + np.maximum(seen, 0.0)


def _ruled_out_up_to(leads: np.ndarray, bar: float, test: SequentialTest) -> float:
    """The largest lead against which enough was won, minus infinity if there is none."""

    def won(lead: float) -> float:
        return float(log_evidence(leads - lead, test)[-1]) - bar

    far = _FAR * max(test.spreads)
    low, high = float(leads.min()) - far, float(leads.max()) + far
    return float(brentq(won, low, high)) if won(low) > 0 else -math.inf
