"""Deadlines in closed form, by a clock that stands still unless it is told to go on."""

import math
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.budgeted import Clock

from rlflow.errors import InputError
from rlflow.optimise.clock import Deadline, Shares, Stopwatch


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


def test_what_is_left_of_the_whole_and_of_a_part(clock: Clock) -> None:
    whole = Deadline.after(60.0, now_s=clock)
    clock.wait(10.0)
    part = whole.part(0.4)
    assert (whole.left_s, part.left_s) == (50.0, 20.0)
    clock.wait(30.0)
    assert (whole.left_s, part.left_s) == (20.0, 0.0)
    assert part.is_over
    assert not whole.is_over


def test_a_budget_counts_from_when_it_began(clock: Clock) -> None:
    assert Deadline.after(60.0, since_s=98.0, now_s=clock).left_s == 58.0


def test_what_a_phase_leaves_over_goes_on_to_the_next(clock: Clock) -> None:
    """Of 120 s with shares 3, 5 and 4: the second may take 5 of 9 parts of what the first left, not of the whole."""
    whole = Deadline.after(120.0, now_s=clock)
    assert whole.part(3 / 12).left_s == 30.0
    clock.wait(12.0)
    assert whole.part(5 / 9).left_s == 60.0
    clock.wait(60.0)
    assert whole.part(4 / 4).left_s == 48.0


def test_a_least_part_goes_at_the_cost_of_what_comes_later(clock: Clock) -> None:
    whole = Deadline.after(10.0, now_s=clock)
    assert whole.part(0.1, least_s=4.0).left_s == 4.0
    assert whole.part(0.1, least_s=40.0).left_s == 10.0


def test_time_is_kept_free(clock: Clock) -> None:
    whole = Deadline.after(10.0, now_s=clock)
    assert whole.before(4.0).left_s == 6.0
    assert whole.before(11.0).is_over


def test_no_budget_is_no_limit(clock: Clock) -> None:
    endless = Deadline.after(None, now_s=clock)
    for deadline in (endless, endless.part(0.1), endless.before(5.0)):
        assert math.isinf(deadline.left_s)
        assert deadline.budget().time_s is None


def test_nothing_is_left_of_an_interrupted_deadline(clock: Clock) -> None:
    """Nor of parts that were handed out before; a search that begins then gets a moment, to return something."""
    pressed: list[bool] = []
    whole = Deadline.after(60.0, now_s=clock, is_interrupted=lambda: bool(pressed))
    part, budget = whole.part(0.5), whole.part(0.5).budget()
    assert not budget.is_called_off()
    pressed.append(True)
    assert [whole.left_s, part.left_s, whole.part(0.5).left_s] == [0.0, 0.0, 0.0]
    assert budget.is_called_off()
    time_s = whole.budget().time_s
    assert time_s is not None
    assert 0 < time_s < 0.1


@pytest.mark.parametrize("budget_s", [0.0, -1.0, math.nan])
def test_a_budget_that_is_no_time_is_refused(budget_s: float) -> None:
    with pytest.raises(InputError, match="a budget must be positive"):
        Deadline.after(budget_s)


def test_shares_are_parts_of_what_is_to_come() -> None:
    shares = Shares(judging=3.0, searching=4.0, measuring=2.0, timing=3.0)
    assert [shares.of(entry.name) for entry in fields(shares)] == [3 / 12, 4 / 9, 2 / 5, 1.0]


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="the share of timing must be positive, not 0"):
        Shares(timing=0.0)


positive = st.floats(0.01, 100.0)


@settings(max_examples=50)
@given(st.lists(positive, min_size=4, max_size=4), st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4), positive)
def test_phases_in_turn_never_outlast_the_whole(weights: list[float], used: list[float], budget_s: float) -> None:
    """However much of its part each takes. Not vacuous: where all take all of it, nothing is left over."""
    clock, shares = Clock(0.0), Shares(*weights)
    whole = Deadline.after(budget_s, now_s=clock)
    for entry, fraction in zip(fields(shares), used, strict=True):
        clock.wait(fraction * whole.part(shares.of(entry.name)).left_s)
    assert clock.now_s <= budget_s * (1 + 1e-9)
    if min(used) == 1.0:
        assert clock.now_s == pytest.approx(budget_s)


def test_a_phase_lasts_until_the_next_one_and_may_begin_again(clock: Clock) -> None:
    watch = Stopwatch(since_s=98.0, now_s=clock)
    for phase, seconds in (("searching", 3.0), ("checking", 0.5), ("searching", 2.0), ("checking", 0.25)):
        watch.begin(phase)
        clock.wait(seconds)
    spent = watch.told()
    assert spent.phases == {"reading": 2.0, "searching": 5.0, "checking": 0.75}
    assert list(spent.phases) == ["reading", "searching", "checking"]
    assert sum(spent.phases.values()) == clock.now_s - 98.0, "no second is lost, and none counts twice"
    assert spent.first_answer_s == 7.75, "the first answer is the last"


def test_the_first_answer_counts(clock: Clock) -> None:
    watch = Stopwatch(now_s=clock)
    clock.wait(4.0)
    watch.answer()
    watch.begin("timing")
    clock.wait(6.0)
    watch.answer()
    assert watch.told().first_answer_s == 4.0
    assert str(watch.told()) == "reading 4.0 s, timing 6.0 s; the first answer was known after 4.0 s"
