"""Filling a price list: a slow machine is waited for, a deadline is kept, an interruption loses one batch."""

import time

import pytest
from support.cost_graphs import graph

from rlflow.cost import pricing
from rlflow.cost.fragment import describe
from rlflow.cost.price_list import Price, PriceList
from rlflow.cost.pricing import VIEW, Missing, PricingConfig, add_prices

COUNT = 7
TWO = PricingConfig(size=2)


@pytest.fixture
def listed():
    return PriceList("none", "none")


@pytest.fixture
def missing():
    """Sums of tensors of different lengths."""

    def made(length):
        g = graph([("Add", "x y", "z")], {"x": (length,), "y": (length,)}, {"z": (length,)})
        fragment = describe(g, g.order)
        return Missing(fragment.signature, fragment, g)

    return [made(length) for length in range(1, COUNT + 1)]


@pytest.fixture
def pauses(monkeypatch):
    """What was waited, in seconds; nobody really waits."""
    made = []
    monkeypatch.setattr(pricing.time, "sleep", made.append)
    return made


def test_each_batch_is_told_and_in_the_list_by_then(listed, missing, drawn_timings):
    told = []
    left = add_prices(
        listed, missing, "deployed", TWO, on_progress=lambda *line: told.append((*line, len(listed.prices)))
    )
    assert left == 0
    assert told == [
        (pytest.approx(2 / 7), "2 of 7 prices measured", 2),
        (pytest.approx(4 / 7), "4 of 7 prices measured", 4),
        (pytest.approx(6 / 7), "6 of 7 prices measured", 6),
        (1.0, "7 of 7 prices measured", 7),
    ]
    assert [len(batch) for batch in drawn_timings.batches] == [2, 2, 2, 1]
    assert all(price.sigma_ms > 0 for price in listed.prices.values())


def test_prices_and_noise_are_those_of_the_lists_pace(listed, missing, drawn_timings):
    add_prices(listed, missing, "deployed", TWO)
    slower = PriceList("none", "none", probe_ms=10.0)
    add_prices(slower, missing, "deployed", TWO)
    assert listed.probe_ms == drawn_timings.probe_ms == 1.0
    assert slower.probe_ms == 10.0
    for key, price in listed.prices.items():
        assert slower.prices[key].ms == pytest.approx(10 * price.ms, abs=1e-5)  # of prices to six digits
        assert slower.prices[key].sigma_ms == pytest.approx(10 * price.sigma_ms, abs=1e-5)


def test_a_view_costs_a_launch(listed, missing, drawn_timings):
    add_prices(listed, [Missing("view", VIEW, missing[0].graph), missing[0]], "deployed", TWO)
    assert listed.get("deployed", "view") == Price(0.001, VIEW.description, 0.0001)
    assert [len(batch) for batch in drawn_timings.batches] == [1]


def test_what_was_timed_while_the_machine_was_slow_is_timed_again(listed, missing, drawn_timings, pauses, caplog):
    """The second batch and its repetition are spoilt; in the end the list is that of a quiet machine."""
    told = []
    drawn_timings.slow = {2: 1.21, 3: 5.0}
    assert add_prices(listed, missing, "deployed", TWO, on_progress=lambda _, line: told.append(line)) == 0
    quiet = PriceList("none", "none")
    drawn_timings.slow = {}
    add_prices(quiet, missing, "deployed", TWO)
    assert listed == quiet
    assert sum("waiting" in line for line in told) == 2
    assert len(caplog.records) == 1
    assert "slower than when the price list was begun" in caplog.text


def test_a_wait_ends_when_the_machine_is_itself_again(listed, missing, drawn_timings, pauses, monkeypatch):
    probes = iter((3.0, 1.21, 1.2))
    drawn_timings.slow = {1: 2.0}
    listed.probe_ms = 1.0
    monkeypatch.setattr(pricing, "time_probe_ms", lambda config: next(probes))
    assert add_prices(listed, missing[:1], "deployed", TWO) == 0
    assert len(pauses) == 2
    assert next(probes, None) is None


def test_a_machine_that_stays_slow_is_not_waited_for_for_ever(listed, missing, drawn_timings):
    listed.probe_ms = 0.5
    started = time.perf_counter()
    assert add_prices(listed, missing, "deployed", PricingConfig(size=2, patience_s=0.05)) == COUNT
    assert time.perf_counter() - started >= 0.05
    assert not listed.prices


def test_nothing_begins_after_the_deadline_and_what_was_done_stays(listed, missing, drawn_timings, monkeypatch):
    deadline = time.perf_counter() + 3600
    with monkeypatch.context() as late:

        def wait_an_hour(fraction, line):
            late.setattr(pricing.time, "perf_counter", lambda: deadline + 1)

        assert add_prices(listed, missing, "deployed", TWO, deadline=deadline, on_progress=wait_an_hour) == COUNT - 2
    assert len(listed.prices) == 2
    assert add_prices(listed, missing, "deployed", TWO, deadline=time.perf_counter()) == COUNT
    assert len(drawn_timings.batches) == 1


def test_little_time_is_shared_by_the_fragments_of_a_batch(listed, missing, drawn_timings, monkeypatch):
    caps, timed = [], pricing.time_batch

    def noted(models, *, config, **settings):
        caps.append(config.time_cap_s)
        return timed(models, config=config, **settings)

    monkeypatch.setattr(pricing, "time_batch", noted)
    add_prices(listed, missing[:2], "deployed", PricingConfig(size=2, time_cap_s=2.0))
    add_prices(listed, missing[:2], "deployed", TWO, deadline=time.perf_counter() + 3)
    assert caps[0] == 2.0
    assert 0 < caps[1] <= 1.5


def test_an_interruption_loses_the_batch_that_it_interrupts(listed, missing, drawn_timings, monkeypatch):
    timed = pricing.time_batch

    def interrupted(models, **settings):
        if len(drawn_timings.batches) == 2:
            raise KeyboardInterrupt
        return timed(models, **settings)

    monkeypatch.setattr(pricing, "time_batch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        add_prices(listed, missing, "deployed", TWO)
    assert len(listed.prices) == 4
    monkeypatch.setattr(pricing, "time_batch", timed)
    rest = [each for each in missing if listed.get("deployed", each.signature) is None]
    assert add_prices(listed, rest, "deployed", TWO) == 0
    assert len(listed.prices) == COUNT
