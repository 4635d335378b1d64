"""Timings outlive the process that took them, and what a slow machine took does not count."""

import json
import logging
import time
from dataclasses import replace
from pathlib import Path

import pytest
from studies.prices.region_gathering import Candidate, Configuration, GatheringConfig, gather
from studies.prices.region_timings import KeptTimings, MeasuringConfig, Wanted, measure

from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.timing.batches import BatchConfig, FragmentTiming

QUICK = MeasuringConfig(
    slow_pace=1000.0, wait_s=0.01, batch=BatchConfig(size=4, sessions=2, turns=1, eviction_bytes=1_000_000)
)
"""So that no busy machine is slow, since the default suite is to pass on one."""


@pytest.fixture(scope="module")
def regions() -> list[Candidate]:
    little = GatheringConfig(walks=1, steps=5, tried=5, expansions=2)
    return list(gather([Configuration("conv", "conv")], little).regions.values())


def silent(fraction: float, text: str) -> None:
    assert 0 <= fraction <= 1


def timing(probe_ms: float, ms: float = 1.0) -> FragmentTiming:
    return FragmentTiming(ms, 0.1, probe_ms)


def test_what_is_wanted_is_timed_as_often(tmp_path: Path, regions):
    kept = KeptTimings(tmp_path / "timings", QUICK.slow_pace)
    assert measure([Wanted(r, 1 + (place < 3)) for place, r in enumerate(regions)], kept, QUICK, silent)
    again = KeptTimings(tmp_path / "timings", QUICK.slow_pace)
    assert again.pace_ms == kept.pace_ms
    assert len(regions) > 8
    for place, region in enumerate(regions):
        good = again.good(region.signature, again.pace_ms)
        assert len(good) == 1 + (place < 3)
        assert all(each.ms >= 0 and each.sigma_ms >= 0 and each.probe_ms > 0 for each in good)


def test_a_run_that_was_killed_goes_on(tmp_path: Path, regions):
    """In the midst of a line: that one is taken again, and nothing else is."""
    path = tmp_path / "timings"
    wanted = [Wanted(region, 1) for region in regions]
    assert measure(wanted, KeptTimings(path, QUICK.slow_pace), QUICK, silent)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:5]) + lines[5][:20])
    assert measure(wanted, KeptTimings(path, QUICK.slow_pace), QUICK, silent)
    after = path.read_text().splitlines(keepends=True)
    assert after[:5] == lines[:5]
    assert [json.loads(line)["signature"] for line in after] == [json.loads(line)["signature"] for line in lines]


def test_an_interruption_keeps_the_batches_that_were_done(tmp_path: Path, regions):
    def impatient(fraction: float, text: str) -> None:
        raise KeyboardInterrupt

    kept = KeptTimings(tmp_path / "timings", QUICK.slow_pace)
    with pytest.raises(KeyboardInterrupt):
        measure([Wanted(region, 1) for region in regions], kept, QUICK, impatient)
    assert len((tmp_path / "timings").read_text().splitlines()) == QUICK.batch.size


def test_the_time_ends_it(tmp_path: Path, regions):
    kept = KeptTimings(tmp_path / "timings", QUICK.slow_pace)
    assert not measure([Wanted(region, 1) for region in regions], kept, replace(QUICK, time_s=1e-9), silent)
    assert kept.pace_ms is None


def test_a_slow_machine_is_waited_for(tmp_path: Path, regions, caplog):
    """Every machine is slow beside a pace that none reaches. Nothing is kept, and one warning says why."""
    kept = KeptTimings(tmp_path / "timings", 1.2)
    kept.add({"fast": timing(1e-6)}, seconds=1.0)
    started = time.monotonic()
    with caplog.at_level(logging.WARNING):
        config = replace(QUICK, slow_pace=1.2, time_s=0.5)
        assert not measure([Wanted(region, 1) for region in regions], kept, config, silent)
    assert time.monotonic() - started >= 0.5
    assert [record.message[:7] for record in caplog.records] == ["waiting"]
    assert len((tmp_path / "timings").read_text().splitlines()) == 1


def test_only_what_was_taken_near_the_median_pace_counts(tmp_path: Path):
    kept = KeptTimings(tmp_path / "timings", 1.2)
    kept.add({"a": timing(2.0), "b": timing(1.0)}, seconds=1.0)
    kept.add({"a": timing(1.1), "c": timing(1.0)}, seconds=1.0)
    assert kept.pace_ms == 1.05
    assert [each.probe_ms for each in kept.good("a", kept.pace_ms)] == [1.1]
    assert kept.good("missing", kept.pace_ms) == []


def test_what_the_runtime_refuses_is_not_tried_again(tmp_path: Path, regions):
    kept = KeptTimings(tmp_path / "timings", QUICK.slow_pace)
    kept.add({regions[0].signature: RLFlowError("no kernel")}, seconds=1.0)
    assert measure([Wanted(regions[0], 2), Wanted(regions[1], 1)], kept, QUICK, silent)
    again = KeptTimings(tmp_path / "timings", QUICK.slow_pace)
    assert again.refused == {regions[0].signature: "no kernel"}
    assert again.good(regions[1].signature, again.pace_ms)


def test_batches_are_cut_by_bytes(tmp_path: Path, regions):
    """Of one region each where two are too many, told by the seconds that lines of one batch share."""
    kept = KeptTimings(tmp_path / "timings", QUICK.slow_pace)
    assert measure([Wanted(region, 1) for region in regions[:4]], kept, replace(QUICK, batch_bytes=1), silent)
    assert len({json.loads(line)["seconds"] for line in kept.path.read_text().splitlines()}) == 4


@pytest.mark.parametrize("slow_pace", [1.0, float("nan")])
def test_a_machine_cannot_be_slower_than_itself(slow_pace: float):
    with pytest.raises(InputError, match="slow_pace"):
        MeasuringConfig(slow_pace=slow_pace)
