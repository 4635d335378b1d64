"""Timings of many regions, taken in batches and kept as they come, so that measuring may be interrupted at any moment.

    kept = KeptTimings(Path("timings.jsonl"), slow_pace=1.2)
    measure(wanted, kept, MeasuringConfig(), on_progress)          goes on where a killed run was
    kept.good("3f0c...", kept.pace_ms)[0].ms

What was timed while the machine was slow is no timing: while the probe says so, nothing is timed, and of what is kept,
only that counts which was taken near the median pace. So a run that began on a busy machine mends itself later.

Invariant: a line is written when its batch has ended, and a line that was cut off is as if it had never been begun.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rlflow.cost.region_record import graph_from_json
from rlflow.errors import InputError, RLFlowError
from rlflow.method import OnProgress
from rlflow.onnx_io.standalone import standalone_model
from rlflow.runtime.timing.batches import BatchConfig, FragmentTiming, time_batch, time_probe_ms
from studies.prices.region_gathering import Candidate

_FIRST_PROBES = 5

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MeasuringConfig:
    """The settings by which regions are timed, and for how long.

    `regions` at most are timed, `again` of them a second time; it ends after `time_s` seconds. While the probe takes
    more than `slow_pace` times what it takes in the median, nothing is timed, and the machine is looked at again every
    `wait_s` seconds. A batch holds `batch.size` regions, fewer where all their values exceed `batch_bytes`.
    """

    regions: int = 13_000
    again: int = 400
    time_s: float = 3600.0
    slow_pace: float = 1.2
    wait_s: float = 5.0
    batch_bytes: int = 256_000_000
    batch: BatchConfig = field(default_factory=BatchConfig)

    def __post_init__(self) -> None:
        if not self.slow_pace > 1:
            raise InputError(
                f"slow_pace is {self.slow_pace}: a machine is never as slow as its own median, give above 1"
            )


class Wanted(NamedTuple):
    """A region to be timed, and how often."""

    region: Candidate
    times: int


class KeptTimings:
    """The timings in a file of one line each, and the reasons of what the runtime refused."""

    def __init__(self, path: Path, slow_pace: float) -> None:
        self.path, self.slow_pace = path, slow_pace
        self.refused: dict[str, str] = {}
        self.seconds: list[float] = []
        self._taken: dict[str, list[FragmentTiming]] = {}
        for line in _whole_lines(path):
            self._enter(json.loads(line))

    @property
    def pace_ms(self) -> float | None:
        """The milliseconds of the probe in the median; None before the first timing."""
        probes = [timing.probe_ms for taken in self._taken.values() for timing in taken]
        return median(probes) if probes else None

    def good(self, signature: str, pace_ms: float) -> list[FragmentTiming]:
        """Return the timings of a region that were not taken on a machine slower than this pace, the earliest first."""
        return [t for t in self._taken.get(signature, []) if t.probe_ms <= self.slow_pace * pace_ms]

    def add(self, timings: Mapping[str, FragmentTiming | RLFlowError], seconds: float) -> None:
        """Keep what a batch gave, which took so many seconds in all."""
        lines = []
        for signature, timing in timings.items():
            result = {"refused": str(timing)} if isinstance(timing, RLFlowError) else asdict(timing)
            lines.append({"signature": signature, "seconds": seconds / len(timings), **result})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))
        for line in lines:
            self._enter(line)

    def _enter(self, line: dict[str, Any]) -> None:
        signature = line["signature"]
        self.seconds.append(line["seconds"])
        if "refused" in line:
            self.refused[signature] = line["refused"]
        else:
            timing = FragmentTiming(line["ms"], line["sigma_ms"], line["probe_ms"])
            self._taken.setdefault(signature, []).append(timing)


def _whole_lines(path: Path) -> list[str]:
    """Return the lines of a file; one that was cut off is removed from it, so that others can follow."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        with path.open("r+", encoding="utf-8") as file:
            file.truncate(len(whole.encode()))
    return whole.splitlines()


def measure(wanted: Sequence[Wanted], kept: KeptTimings, config: MeasuringConfig, on_progress: OnProgress) -> bool:
    """Time, in order, what is wanted more often than there are good timings of it; True if all of it was done, False if
    the time was over before.
    """
    deadline = time.monotonic() + config.time_s
    while missing := _missing(wanted, kept):
        done = len(wanted) - len(missing)
        for batch in _batches(missing, config):
            pace_ms = kept.pace_ms or min(time_probe_ms(config.batch) for _ in range(_FIRST_PROBES))
            if not _timed(batch, pace_ms, kept, config, deadline, partial(on_progress, done / len(wanted))):
                return False
            done += len(batch)
            on_progress(done / len(wanted), f"{done} of {len(wanted)} regions")
    return True


def _missing(wanted: Sequence[Wanted], kept: KeptTimings) -> list[Candidate]:
    """Return what is to be timed next, each once: what never was, and when there is no more of that, what is wanted
    again.
    """
    pace_ms = kept.pace_ms or 0.0
    known = {region.signature: len(kept.good(region.signature, pace_ms)) for region, _ in wanted}
    open_ = [each for each in wanted if each.region.signature not in kept.refused]
    never = [region for region, _ in open_ if not known[region.signature]]
    return never or [region for region, times in open_ if known[region.signature] < times]


def _batches(regions: Sequence[Candidate], config: MeasuringConfig) -> Iterator[list[Candidate]]:
    """Cut regions into batches, in their order."""
    batch: list[Candidate] = []
    for region in regions:
        nbytes = sum(other.nbytes for other in batch) + region.nbytes
        if batch and (len(batch) >= config.batch.size or nbytes > config.batch_bytes):
            yield batch
            batch = []
        batch.append(region)
    if batch:
        yield batch


def _timed(
    batch: Sequence[Candidate],
    pace_ms: float,
    kept: KeptTimings,
    config: MeasuringConfig,
    deadline: float,
    tell: Callable[[str], None],
) -> bool:
    """Time a batch, again and again until the machine is not slow meanwhile; False if the time is over before."""
    models = [standalone_model(graph_from_json(region.content)) for region in batch]
    while time.monotonic() < deadline:
        started = time.monotonic()
        timings = time_batch(models, setting="deployed", config=config.batch)
        seconds = time.monotonic() - started
        probes = [timing.probe_ms for timing in timings if isinstance(timing, FragmentTiming)]
        if max(probes, default=0.0) <= config.slow_pace * pace_ms:
            kept.add(dict(zip((region.signature for region in batch), timings, strict=True)), seconds)
            return True
        _wait(pace_ms, config, deadline, tell)
    return False


def _wait(pace_ms: float, config: MeasuringConfig, deadline: float, tell: Callable[[str], None]) -> None:
    """Wait until the probe is about as fast as it was, or the time is over."""
    text = f"waiting, since the machine is more than {config.slow_pace:g} times as slow as it was"
    log.warning(text)
    tell(text)
    while time.monotonic() < deadline and time_probe_ms(config.batch) > config.slow_pace * pace_ms:
        time.sleep(config.wait_s)
