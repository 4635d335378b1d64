"""What is believed of two models: Bayes' rule on the bets of the sequential test, and rarely wrong on drawn times."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from studies.timing_study.trials import NOISES, simulated

from rlflow.runtime.timing.belief import NOTHING_PREDICTED, Belief, Prior, prior_of

LOGS = st.floats(-3.0, 3.0)
ROUNDS = arrays(np.float64, st.tuples(st.integers(1, 12), st.just(4)), elements=LOGS)


def test_before_any_difference_the_prior_is_believed() -> None:
    """Of four equal times each of the six pairs wins one, so that nothing is learned."""
    is_faster, is_harmful = Belief().probabilities(np.zeros((5, 2)), np.zeros((5, 2)))
    assert is_faster.tolist() == pytest.approx([NOTHING_PREDICTED.faster] * 5)
    assert (np.diff(is_harmful) < 0).all(), "the same is not slower by 1 %"


def test_one_round_by_hand() -> None:
    """A round that is clear multiplies by 1 - stake + 6 stake = 5 what speaks for "faster"; its opposite keeps 0.2."""
    is_faster, is_harmful = Belief(prior=Prior(0.5, 0.2, 0.1)).probabilities(np.full((1, 2), 9.0), np.zeros((1, 2)))
    assert is_faster[0] == pytest.approx(0.5 * 5 / (0.5 * 5 + 0.3 + 0.2 * 0.2))
    assert is_harmful[0] == pytest.approx(0.1 / (0.1 + 0.9 * 5))


@given(ROUNDS, st.floats(0.0, 0.5), st.integers(0, 1))
def test_a_slower_original_never_makes_the_candidate_less_believed(logs: np.ndarray, more: float, place: int) -> None:
    """But for what its two times then differ by, so both grow."""
    belief, later = Belief(), logs[:, :2] + more
    before = belief.probabilities(logs[:, :2], logs[:, 2:])
    after = belief.probabilities(later, logs[:, 2:])
    assert (after[0] >= before[0] - 1e-9).all()
    assert (after[1] <= before[1] + 1e-9).all()


@given(ROUNDS)
def test_a_larger_predicted_saving_is_believed_more(logs: np.ndarray) -> None:
    sure = [Belief(prior=prior_of(saving)).probabilities(logs[:, :2], logs[:, 2:])[0] for saving in (0.0, 2.0, 20.0)]
    assert (sure[0] <= sure[1]).all()
    assert (sure[1] <= sure[2]).all()


def test_nothing_predicted_is_the_least_prior() -> None:
    assert prior_of(0.0) == prior_of(-5.0) == NOTHING_PREDICTED
    assert prior_of(1e6).faster == pytest.approx(0.6)


@pytest.mark.parametrize("wrong", [{"faster": 0.0}, {"slower": -0.1}, {"faster": 0.9, "slower": 0.2}, {"harmful": 1.0}])
def test_priors_that_rule_a_case_out_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be positive, and leave some to models that are the same"):
        Prior(**wrong)


@pytest.mark.parametrize("kind", NOISES)
def test_a_model_is_hardly_ever_called_faster_than_itself(kind: str) -> None:
    """At most in 2 of 100 comparisons where nothing was predicted, which Ville's inequality promises; where a tenth
    was, in at most 27 of 100, and mostly far less often.
    """
    promised = {saving: (1 - p.faster - p.slower) * 9 / p.faster for saving in (0.0, 10.0) for p in [prior_of(saving)]}
    for saving, odds in promised.items():
        belief = Belief(prior=prior_of(saving))
        found = simulated(NOISES[kind](0.015), 0.0, belief.decisions, rounds=60, cases=3000, seed=0)
        error = math.sqrt(found["faster_share"] / 3000)
        assert 0 < found["faster_share"] <= 1 / odds + 3 * error
    assert 1 / promised[0.0] < 0.02


@pytest.mark.parametrize("kind", NOISES)
def test_what_is_slower_by_two_percent_is_hardly_ever_delivered(kind: str) -> None:
    """In at most 2 of 100 comparisons, though a saving of a tenth was predicted."""
    belief = Belief(prior=prior_of(10.0))
    found = simulated(NOISES[kind](0.015), 0.02, belief.decisions, rounds=60, cases=3000, seed=0)
    assert found["faster_share"] <= 0.02
    assert found["slower_share"] > 0.5, "not vacuous: most are found out"
