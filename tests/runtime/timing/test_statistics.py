import numpy as np
import pytest

from rlflow.runtime.timing.statistics import Estimate, beyond_noise, estimate, median_ci95


def test_an_estimate_is_a_median_with_its_interval():
    values = np.random.default_rng(0).normal(5.0, 1.0, 101)
    measured = estimate(values)
    assert measured.value == np.median(values)
    assert measured.ci95_low < measured.value < measured.ci95_high
    assert measured.ci95 == (measured.ci95_low, measured.ci95_high)
    assert estimate(values) == measured
    assert estimate([3.0]).ci95 == (3.0, 3.0)


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [np.inf]])
def test_no_estimate_without_finite_values(values):
    with pytest.raises(ValueError, match="needs finite values"):
        estimate(values)


@pytest.mark.parametrize(
    ("measured", "counts"),
    [
        (Estimate(1.05, 1.03, 1.07), True),
        (Estimate(0.90, 0.88, 0.93), True),
        (Estimate(1.05, 0.99, 1.10), False),
        (Estimate(1.019, 1.018, 1.0195), False),
        (Estimate(1.0, 1.0, 1.0), False),
    ],
)
def test_a_difference_counts_from_two_percent_outside_the_interval(measured, counts):
    assert beyond_noise(measured) is counts


def test_constant_values_have_no_width():
    assert median_ci95(np.full(7, 2.5)) == (2.5, 2.5)
    assert median_ci95(np.array([4.0])) == (4.0, 4.0)


def test_the_interval_covers_the_true_median_as_often_as_it_says():
    """Nominal 95 %; the binomial standard error of 400 trials is 1.1 %, so 90 % refuses a 80 % interval
    surely.
    """
    rng = np.random.default_rng(0)
    trials = [median_ci95(rng.exponential(size=25), seed=trial, resamples=400) for trial in range(400)]
    covered = np.mean([low <= np.log(2) <= high for low, high in trials])
    assert 0.90 <= covered <= 0.99


def test_determinism_and_refusal():
    values = np.random.default_rng(1).normal(size=9)
    assert median_ci95(values, seed=2) == median_ci95(values, seed=2)
    with pytest.raises(ValueError, match="non-empty vector"):
        median_ci95(np.array([]))
