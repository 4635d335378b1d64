"""The latency that a model saves against another, with the noise that two such figures must exceed to be told apart.

    found = measured_saving(start, model, setting="deployed", rounds=10, runs_per_round=3)
    tells_apart(NO_SAVING, found)          False if the difference may be noise

Each round opens fresh sessions of the start, of the start again and of the model, in a drawn order. The start against
itself is the control: what it differs by, a model may differ by as well without being faster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto

from rlflow.runtime.session import Setting
from rlflow.runtime.timing.latency import compare_latency
from rlflow.runtime.timing.statistics import NOISE, Estimate, ratio

LEAST_ROUNDS = 5
"""With fewer, all rounds lie on one side too often for an interval to mean anything."""


@dataclass(frozen=True)
class Saving:
    """A saving in percent of the start's latency, which may as well be anything from `low` to `high`."""

    percent: float
    low: float
    high: float


NO_SAVING = Saving(0.0, 0.0, 0.0)
"""The saving of the start itself, which needs no measurement."""


def measured_saving(
    start: ModelProto | Path,
    model: ModelProto | Path,
    *,
    setting: Setting,
    rounds: int,
    runs_per_round: int,
    threads: int = 1,
) -> Saving:
    """Time a model against the start in that many rounds. Raises what `compare_latency` does."""
    times_ms = compare_latency(
        {"start": start, "start again": start, "model": model},
        setting=setting,
        rounds=rounds,
        runs_per_round=runs_per_round,
        threads=threads,
    )
    return saving(times_ms["start"], times_ms["start again"], times_ms["model"])


def saving(start_ms: np.ndarray, again_ms: np.ndarray, model_ms: np.ndarray) -> Saving:
    """Return the saving that the times of paired rounds, (rounds,) each, tell.

    Its interval is that of the ratio, but never narrower than 2 % (docs/measurements.md, 2) or than what the start
    seems to differ from itself to either side.
    """
    change, control = ratio(start_ms, model_ms), ratio(start_ms, again_ms)
    least = max(100.0 * NOISE, _farthest(control))
    found = _percent(change.value)
    return Saving(
        percent=found,
        low=min(_percent(change.ci95_low), found - least),
        high=max(_percent(change.ci95_high), found + least),
    )


def tells_apart(before: Saving, after: Saving) -> bool:
    """Return True if two savings against the same start differ by more than their noise.

    Errors of two measurements are independent, so their squares add up. Against the start itself, which has none, this
    asks if 0 lies outside the interval.
    """
    lower, upper = sorted((before, after), key=lambda each: each.percent)
    noise = math.hypot(upper.percent - upper.low, lower.high - lower.percent)
    return upper.percent - lower.percent > noise


def _percent(faster: float) -> float:
    """The saving of a model that is so many times as fast, in percent."""
    return 100.0 * (1.0 - 1.0 / faster)


def _farthest(control: Estimate) -> float:
    """The farther end of the control's interval from no difference, in percent."""
    return max(abs(_percent(control.ci95_low)), abs(_percent(control.ci95_high)))
