"""The verdict of some rounds: what is proven, what is believed, and the words and figures of both."""

import itertools
import math

import numpy as np
import pytest

from rlflow.runtime.timing.belief import Belief, prior_of
from rlflow.runtime.timing.sequential import DEFAULT_TEST as PROOF
from rlflow.runtime.timing.verdict import judge


def times(rounds: int, candidate: float = 1.0, spread: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Milliseconds of original and candidate, (rounds, 2) each."""
    noise = np.exp(spread * np.random.default_rng(seed).standard_normal((2, rounds, 2)))
    return 5.0 * noise[0], 5.0 * candidate * noise[1]


@pytest.mark.parametrize(("candidate", "decision"), [(0.9, "faster"), (1.1, "slower"), (1.0, "same")])
def test_few_rounds_decide_what_is_clear(candidate: float, decision: str) -> None:
    """Four rounds win enough if all are clear, three do not: 5 ** 3 < 2 / 0.01 < 5 ** 4."""
    rounds = 4 if decision != "same" else 6  # 1 % on either side is two spreads
    verdict = judge(*times(rounds, candidate), proof=PROOF)
    assert verdict.decision == decision
    assert verdict.ratio == pytest.approx(1 / candidate)
    assert verdict.low < 1 / candidate < verdict.high
    assert (verdict.control, verdict.rounds) == (1.0, rounds)
    few = judge(*times(3, candidate), proof=PROOF)
    assert (few.decision, few.low, few.high, few.bounded) == ("undecided", 0.0, math.inf, False)


def test_what_the_control_shows_raises_the_bar() -> None:
    """A candidate that takes a tenth less time, and a second timing of the original that does so too."""
    original, candidate = times(8, 0.9)
    assert judge(original, candidate, proof=PROOF).decision == "faster"
    doubtful = judge(original * [1.0, 0.9], candidate, proof=PROOF)
    assert doubtful.decision == "undecided"
    assert doubtful.control == pytest.approx(1 / 0.9)


def test_a_stalled_session_spoils_one_round_alone() -> None:
    """As much as any round that says the contrary: a stall of a minute is no worse than one of a millisecond."""
    original, candidate = times(8, 0.9)
    short, long = candidate.copy(), candidate.copy()
    short[3, 0], long[3, 0] = 6.5, 6e4
    assert judge(original, short, proof=PROOF).decision == judge(original, long, proof=PROOF).decision == "faster"
    assert judge(original, long, proof=PROOF).low == pytest.approx(judge(original, short, proof=PROOF).low, rel=0.01)


def test_the_same_times_give_the_same_verdict() -> None:
    first, second = (judge(*times(9, 0.97, 0.02, seed=3), proof=PROOF) for _ in range(2))
    assert first == second
    assert str(first).startswith(f"ratio {first.ratio:.3f}, interval {first.low:.3f} to {first.high:.3f}, faster with")
    said = "ratio 1.000, faster with probability 0.12, original against itself 1.000, 1 round"
    assert str(judge(*times(1), proof=PROOF)) == said


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_times_that_are_none_are_refused(wrong: float) -> None:
    for place in itertools.product(range(2), range(2), range(2)):
        spoiled = np.array(times(2))
        spoiled[place] = wrong
        with pytest.raises(ValueError, match="needs two positive times of each model for every round"):
            judge(*spoiled)


@pytest.mark.parametrize("shape", [(0, 2), (2,), (2, 3), (3, 2)])
def test_rounds_that_do_not_belong_together_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="needs two positive times of each model for every round"):
        judge(np.ones(shape if shape != (3, 2) else (2, 2)), np.ones(shape))


@pytest.mark.parametrize(("candidate", "saving_percent", "rounds"), [(0.9, 10.0, 2), (0.9, 0.0, 3), (0.97, 3.0, 2)])
def test_what_was_predicted_is_believed_after_fewer_rounds_than_are_proven(
    candidate: float, saving_percent: float, rounds: int
) -> None:
    """Four rounds are the fewest that prove anything."""
    belief = Belief(prior=prior_of(saving_percent))
    verdict = judge(*times(rounds, candidate), belief)
    assert verdict.decision == "faster"
    assert verdict.faster_probability >= belief.faster
    assert verdict.harmful_probability <= belief.harmful
    assert judge(*times(rounds - 1, candidate), belief).decision == "undecided"
    assert judge(*times(rounds, candidate), belief, PROOF).decision == "undecided"


def test_a_loss_is_found_whatever_was_predicted() -> None:
    """Slower is decided by rounds alone."""
    verdict = judge(*times(3, 1.1), Belief(prior=prior_of(50.0)))
    assert verdict.decision == "slower"
    assert verdict.faster_probability < 0.01
    assert verdict.harmful_probability > 0.9
