"""The answer of some rounds in which two models were timed: which one is faster, by how much, and how sure that is.

verdict = judge(original_ms, candidate_ms)      milliseconds (rounds, 2): a round times each model twice
verdict.decision                                "faster", "slower", "same" or "undecided"
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rlflow.runtime.timing.belief import Belief
from rlflow.runtime.timing.sequential import Decision, SequentialTest, decisions, interval


@dataclass(frozen=True)
class Verdict:
    """The answer after some rounds. Ratios are the original's time over the candidate's: above 1, it is faster.

    `ratio` is a median over rounds; `low` and `high` are 0 and infinite while there are too few rounds to say
    anything. `control` is the median ratio of the original's first time to its second. `faster_probability` and
    `harmful_probability`, that it is slower by more than the margin, weigh the prediction too.
    """

    decision: Decision
    ratio: float
    low: float
    high: float
    control: float
    rounds: int
    faster_probability: float
    harmful_probability: float

    @property
    def bounded(self) -> bool:
        """True if there were rounds enough for an interval."""
        return math.isfinite(self.high)

    def __str__(self) -> str:
        held = f", interval {self.low:.3f} to {self.high:.3f}" if self.bounded else ""
        rounds = f"{self.rounds} {'round' if self.rounds == 1 else 'rounds'}"
        sure = f"faster with probability {self.faster_probability:.2f}"
        return f"ratio {self.ratio:.3f}{held}, {sure}, original against itself {self.control:.3f}, {rounds}"


def judge(
    original_ms: np.ndarray,
    candidate_ms: np.ndarray,
    belief: Belief | None = None,
    proof: SequentialTest | None = None,
) -> Verdict:
    """Decide after these rounds by what may be believed, or by the test `proof` alone if one is asked for.

    Raises `ValueError` for arrays that are not (rounds, 2), or not of positive times.
    """
    belief = belief or Belief()
    original, candidate = np.asarray(original_ms, dtype=np.float64), np.asarray(candidate_ms, dtype=np.float64)
    for times in (original, candidate):
        if times.shape != (len(original), 2) or not times.size or not (np.isfinite(times) & (times > 0)).all():
            raise ValueError(f"a verdict needs two positive times of each model for every round, got {times.tolist()}")
    logs = np.log(original), np.log(candidate)
    decided = belief.decisions(*logs) if proof is None else decisions(*logs, proof)
    low, high = interval(*logs, proof or belief.test)
    is_faster, is_harmful = belief.probabilities(*logs)
    return Verdict(
        decision=decided[-1].item(),
        ratio=math.exp(np.median(logs[0].mean(axis=1) - logs[1].mean(axis=1))),
        low=math.exp(low),
        high=math.exp(high),
        control=math.exp(np.median(np.log(original[:, 0] / original[:, 1]))),
        rounds=len(original),
        faster_probability=float(is_faster[-1]),
        harmful_probability=float(is_harmful[-1]),
    )
