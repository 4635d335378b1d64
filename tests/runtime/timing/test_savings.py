"""Savings with their noise: closed form, how often noise is called a gain, and real models that differ or do not."""

import numpy as np
import pytest

from rlflow.errors import InputError
from rlflow.runtime.timing.savings import NO_SAVING, Saving, measured_saving, saving, tells_apart

ROUNDS = 10


def drawn(rng: np.random.Generator, noise: float, factor: float = 1.0) -> Saving:
    """The saving of rounds in which the machine drifts, by a model that takes `factor` of the start's time."""
    drift = np.exp(0.2 * rng.standard_normal(ROUNDS))
    start, again, model = drift * np.exp(noise * rng.standard_normal((3, ROUNDS)))
    return saving(start, again, factor * model)


def test_without_noise_a_saving_is_what_it_is_within_two_percent():
    """A quarter less time; the interval is never narrower than what counts as a result."""
    times = np.linspace(1.0, 3.0, ROUNDS)
    found = saving(times, times, 0.75 * times)
    assert (found.percent, found.low, found.high) == pytest.approx((25.0, 23.0, 27.0))
    slower = saving(times, times, 1.25 * times)
    assert (slower.percent, slower.low, slower.high) == pytest.approx((-25.0, -27.0, -23.0))


@pytest.mark.parametrize(("factor", "counts"), [(0.97, True), (1.03, True), (0.985, False), (1.015, False)])
def test_two_percent_is_the_least_that_counts(factor: float, counts: bool):
    times = np.ones(ROUNDS)
    assert tells_apart(NO_SAVING, saving(times, times, factor * times)) == counts


def test_what_the_start_differs_from_itself_a_model_may_differ_as_well():
    """A tenth would count, had the start not seemed to be as much faster than itself."""
    times = np.ones(ROUNDS)
    assert tells_apart(NO_SAVING, saving(times, times, 0.9 * times))
    assert not tells_apart(NO_SAVING, saving(times, 0.9 * times, 0.9 * times))
    assert not tells_apart(NO_SAVING, saving(times, 1.2 * times, 0.9 * times))


def test_errors_of_two_measurements_add_up_as_squares():
    """By 3-4-5: noise of 3 to one side and 4 to the other."""
    one = Saving(10.0, 5.0, 14.0)
    assert not tells_apart(one, Saving(14.9, 11.9, 16.0))
    assert tells_apart(one, Saving(15.1, 12.1, 16.0))
    assert tells_apart(Saving(15.1, 12.1, 16.0), one), "whichever was first"
    assert not tells_apart(one, one)


@pytest.mark.parametrize("noise", [0.005, 0.02, 0.1])
def test_noise_is_hardly_ever_a_gain(noise: float):
    """On a quiet and a busy machine: at most one in twenty, as intervals of 95 % allow, of 200 models like the start.

    And not because nothing ever counts: a third less time does, wherever rounds scatter by less than that.
    """
    rng = np.random.default_rng(0)
    assert sum(tells_apart(NO_SAVING, drawn(rng, noise)) for _ in range(200)) <= 10
    gains = sum(tells_apart(NO_SAVING, drawn(rng, noise, factor=2 / 3)) for _ in range(50))
    assert gains >= 45


@pytest.mark.parametrize("factor", [0.5, 0.9])
def test_noise_between_two_gains_is_hardly_ever_a_gain(factor: float):
    rng = np.random.default_rng(1)
    alarms = sum(tells_apart(drawn(rng, 0.02, factor), drawn(rng, 0.02, factor)) for _ in range(200))
    assert alarms <= 10
    assert sum(tells_apart(drawn(rng, 0.02, factor), drawn(rng, 0.02, factor / 2)) for _ in range(50)) >= 45


def test_a_setting_that_is_not_there_is_refused(make_matmul):
    model = make_matmul(8, 16)
    with pytest.raises(InputError, match="there is no setting 'fast'"):
        measured_saving(model, model, setting="fast", rounds=5, runs_per_round=1)
