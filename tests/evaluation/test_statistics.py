import numpy as np
import pytest

from rlflow.evaluation.statistics import beyond_noise, estimate, min_max_normalised, paired_ratios
from rlflow.runtime.latency import Ratio


def test_an_estimate_is_a_median_with_its_interval():
    values = np.random.default_rng(0).normal(5.0, 1.0, 101)
    measured = estimate(values)
    assert measured.value == np.median(values)
    assert measured.ci95_low < measured.value < measured.ci95_high
    assert measured.ci95 == [measured.ci95_low, measured.ci95_high]
    assert measured.cases == 101
    assert estimate(values) == measured
    assert estimate([3.0]).ci95 == [3.0, 3.0]


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [np.inf]])
def test_no_estimate_without_finite_values(values):
    with pytest.raises(ValueError, match="needs finite values"):
        estimate(values)


def test_paired_ratios_are_reference_over_other():
    times = {"original": np.array([4.0, 8.0]), "greedy": np.array([2.0, 4.0]), "slow": np.array([8.0, 16.0])}
    ratios = paired_ratios(times, "original")
    assert {name: ratio.value for name, ratio in ratios.items()} == {"greedy": 2.0, "slow": 0.5}


@pytest.mark.parametrize(
    ("measured", "counts"),
    [
        (Ratio(1.05, 1.03, 1.07), True),
        (Ratio(0.90, 0.88, 0.93), True),
        (Ratio(1.05, 0.99, 1.10), False),
        (Ratio(1.019, 1.018, 1.0195), False),
        (Ratio(1.0, 1.0, 1.0), False),
    ],
)
def test_a_difference_counts_from_two_percent_outside_the_interval(measured, counts):
    assert beyond_noise(measured) is counts


def test_min_max_normalisation():
    np.testing.assert_array_equal(min_max_normalised(np.array([2.0, 4.0, 3.0])), [0, 1, 0.5])
    np.testing.assert_array_equal(min_max_normalised(np.array([2.0, 2.0])), [0, 0])
