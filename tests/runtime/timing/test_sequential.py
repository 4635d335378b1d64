"""The sequential test: exact where it says so, and right on drawn times of every kind."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rlflow.evaluation.timing_study import NOISES, simulated
from rlflow.runtime.timing.sequential import DEFAULT_TEST, SequentialTest, decisions, interval, judge, log_evidence

ONE_SPREAD = SequentialTest(spreads=(0.02,))
LOGS = st.floats(-3.0, 3.0)
ROUNDS = arrays(np.float64, st.tuples(st.integers(1, 12), st.just(2)), elements=LOGS)


def times(rounds: int, candidate: float = 1.0, spread: float = 0.0, seed: int = 0) -> np.ndarray:
    """Milliseconds of original, original again and candidate, (3, rounds)."""
    noise = np.exp(spread * np.random.default_rng(seed).standard_normal((3, rounds)))
    return np.array([[5.0], [5.0], [5.0 * candidate]]) * noise


@given(arrays(np.float64, 3, elements=LOGS))
def test_the_game_is_fair(logs: np.ndarray) -> None:
    """Over the three times that may be the candidate's, what comes back is on average what was put in, to rounding."""
    for test in (DEFAULT_TEST, ONE_SPREAD):
        cases = [
            np.array([[a - candidate, b - candidate]])
            for candidate, a, b in (logs[[k, (k + 1) % 3, (k + 2) % 3]] for k in range(3))
        ]
        won = [np.exp(log_evidence(leads, test)[-1]) for leads in cases]
        assert np.mean(won) == pytest.approx(1.0, abs=1e-9)


def test_a_round_wins_and_loses_within_bounds() -> None:
    """The shortest time by far wins 1 + 2 stake, the longest by far leaves 1 - stake, no lead changes nothing."""
    far, stake = np.full((1, 2), 50.0), DEFAULT_TEST.stake
    assert log_evidence(far)[-1] == pytest.approx(math.log(1 + 2 * stake))
    assert log_evidence(-far)[-1] == pytest.approx(math.log(1 - stake))
    assert log_evidence(0 * far)[-1] == pytest.approx(0.0, abs=1e-12)


def test_one_round_by_hand() -> None:
    """Leads of 2 % and 4 % at a spread of 2 %: 1 and 2 units."""
    factor = 1 - 0.8 + 0.8 * 3 / (1 + math.exp(-1) + math.exp(-2))
    assert log_evidence(np.array([[0.02, 0.04]]), ONE_SPREAD)[-1] == pytest.approx(math.log(factor))


@given(ROUNDS, st.floats(0.0, 1.0), st.integers(0, 11))
def test_evidence_never_falls_when_a_lead_grows(leads: np.ndarray, more: float, place: int) -> None:
    larger = leads.copy()
    larger[place % len(leads), place % 2] += more
    assert log_evidence(larger)[-1] >= log_evidence(leads)[-1] - 1e-12


@given(ROUNDS)
def test_faster_and_slower_are_mirror_images(leads: np.ndarray) -> None:
    """And two models are never both: an interval has a low end below its high end."""
    words = {"faster": "slower", "slower": "faster", "same": "same", "undecided": "undecided"}
    assert decisions(-leads).tolist() == [words[word] for word in decisions(leads)]
    low, high = interval(leads)
    assert low < high
    assert interval(-leads) == pytest.approx((-high, -low))


@given(ROUNDS)
def test_the_decision_is_what_the_interval_says(leads: np.ndarray) -> None:
    """Not vacuous: `test_few_rounds_decide_what_is_clear` meets each decision."""
    low, high = interval(leads)
    margin = math.log1p(DEFAULT_TEST.margin)
    expected = (
        "faster" if low > 1e-9 else "slower" if high < -1e-9 else "same" if max(-low, high) < margin else "undecided"
    )
    if min(abs(low), abs(high), abs(low + margin), abs(high - margin)) > 1e-9:
        assert decisions(leads)[-1] == expected


@pytest.mark.parametrize(("candidate", "decision"), [(0.9, "faster"), (1.1, "slower"), (1.0, "same")])
def test_few_rounds_decide_what_is_clear(candidate: float, decision: str) -> None:
    """Six rounds win enough if all are clear, five do not: 2.6 ** 5 < 2 / 0.01 < 2.6 ** 6."""
    rounds = 6 if decision != "same" else 10  # 1 % on either side is two spreads
    verdict = judge(*times(rounds, candidate))
    assert verdict.decision == decision
    assert verdict.ratio == pytest.approx(1 / candidate)
    assert verdict.low < 1 / candidate < verdict.high
    assert (verdict.control, verdict.rounds) == (1.0, rounds)
    few = judge(*times(5, candidate))
    assert (few.decision, few.low, few.high, few.bounded) == ("undecided", 0.0, math.inf, False)


def test_what_the_control_shows_raises_the_bar() -> None:
    """A candidate 10 % faster, beside a second timing of the original that is 10 % off in the same direction."""
    original, again, candidate = times(12, 0.9)
    assert judge(original, again, candidate).decision == "faster"
    doubtful = judge(original, 0.9 * again, candidate)
    assert doubtful.decision == "undecided"
    assert doubtful.control == pytest.approx(1 / 0.9)


def test_a_stalled_session_spoils_one_round_alone() -> None:
    """As much as any round that says the contrary: a stall of a minute is no worse than one of a millisecond."""
    original, again, candidate = times(12, 0.9)
    short, long = (
        judge(original, again, np.where(np.arange(12) == 3, stalled_ms, candidate)) for stalled_ms in (6.0, 6e4)
    )
    assert short.decision == long.decision == "faster"
    assert long.low == pytest.approx(short.low, rel=0.01)


@pytest.mark.parametrize("kind", NOISES)
def test_a_model_is_not_called_different_from_itself(kind: str) -> None:
    """5,000 comparisons, up to 60 rounds each, asked after each. Guaranteed is 1 %; of 5,000 cases the standard error
    is 0.14 %, so that 1.5 % refuses a test that errs twice as often as it says.
    """
    found = simulated(NOISES[kind](0.015), 0.0, DEFAULT_TEST, rounds=60, cases=5000, seed=0)
    assert found["faster_share"] + found["slower_share"] <= 0.015
    assert found["faster_share"] > 0, "not vacuous: some bets are won by chance"


@pytest.mark.parametrize(
    ("kind", "spread", "rounds"),
    [("quiet", 0.01, 10), ("quiet", 0.02, 20), ("heavy_tailed", 0.015, 20), ("bursts", 0.015, 30), ("drift", 0.01, 35)],
)
def test_three_percent_are_found(kind: str, spread: float, rounds: int) -> None:
    """In at least 90 % of the cases, none of them the wrong way round, after fewer than `rounds` rounds on average."""
    found = simulated(NOISES[kind](spread), 0.03, DEFAULT_TEST, rounds=60, cases=1000, seed=1)
    assert found["slower_share"] >= 0.9
    assert found["faster_share"] <= 0.005
    assert found["mean_rounds"] < rounds


def test_the_interval_holds_after_every_round() -> None:
    """A true factor of 1.05 is ruled out at no time in at least 99 % of 2,000 cases; in none is it all that is left."""
    logs = NOISES["heavy_tailed"](0.02)(np.random.default_rng(2), (2000, 50, 3))
    logs[..., 2] -= math.log(1.05)
    leads = logs[..., :2] - logs[..., 2:] - math.log(1.05)
    missed = np.isin(decisions(leads, replace(DEFAULT_TEST, margin=1e-9)), ("faster", "slower")).any(axis=1)
    assert 0 < missed.mean() <= 0.015


def test_the_same_times_give_the_same_verdict() -> None:
    first, second = (judge(*times(9, 0.97, 0.02, seed=3)) for _ in range(2))
    assert first == second
    assert str(first).startswith(f"ratio {first.ratio:.3f}, interval {first.low:.3f} to {first.high:.3f}, original")
    assert str(judge(*times(1))) == "ratio 1.000, original against itself 1.000, 1 round"


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_times_that_are_none_are_refused(wrong: float) -> None:
    for place in itertools.product(range(3), range(2)):
        spoiled = times(2)
        spoiled[place] = wrong
        with pytest.raises(ValueError, match="positive times of paired rounds"):
            judge(*spoiled)
    with pytest.raises(ValueError, match="positive times of paired rounds"):
        judge(*times(0))
