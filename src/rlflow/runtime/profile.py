"""The time that each kernel of a model takes inside the model, from ONNX Runtime's own profiles.

    fused = Fused.of(model)                                         # as ONNX Runtime runs it
    times = profile(fused, draw_inputs(fused.model, rng), ProfileConfig())
    fused.kernels[3].operator, times.kernel_us[3]                   # "Gemm", 812.0

Only a profile knows how warm the weights and the values of a kernel are where it runs. It costs time itself, about 3 us
a kernel. So every session that writes one has a twin that does not, and up to so much is taken off each kernel, or
added for its launch. By what is left one session was slower than the other: all kernels are, by the same factor. So the
kernels' times add up to the model's.

Invariant: the times have the order of the kernels, and no kernel takes less than nothing.
"""

from __future__ import annotations

import json
import math
import time
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime as ort
from onnx import ModelProto, NodeProto

from rlflow.errors import InputError
from rlflow.runtime.scratch import scratch_folder
from rlflow.runtime.session import fused_model, open_session, run

_KERNEL, _MODEL, _NAME = "_kernel_time", "model_run", "kernel_{}"
_QUIET = 0.25
"""Quantile of a session's runs: noise adds time, and a quarter of them is quiet at most times."""
_MOST_SHIFT_US = 3.0
"""Microseconds that a profile adds to a kernel, at most, or that a launch takes beside it."""
_ROUNDED_US = 0.5
"""A profile has whole microseconds, cut off."""


@dataclass(frozen=True)
class ProfileConfig:
    """`sessions` of each kind, and `runs` in each after one that warms it; fewer where they take over `time_cap_s`."""

    sessions: int = 2
    runs: int = 10
    time_cap_s: float = 2.0
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("sessions", "runs", "threads"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; a profile needs at least 1")


class Kernel(NamedTuple):
    """A node of a fused model: the operator that runs, its domain, the node's name, and those of its values.

    `channels_last` is said by a reorder of the blocked layout that transposes as well, and by a convolution of bytes.
    """

    operator: str
    domain: str
    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    channels_last: bool = False

    @classmethod
    def of(cls, node: NodeProto) -> Kernel:
        channels_last = any(a.name == "channels_last" and a.i for a in node.attribute)
        return cls(node.op_type, node.domain, node.name, tuple(node.input), tuple(node.output), channels_last)


@dataclass(frozen=True)
class Fused:
    """A model as ONNX Runtime has fused it, and its kernels in their order."""

    model: ModelProto
    kernels: tuple[Kernel, ...]

    @classmethod
    def of(cls, model: ModelProto | Path) -> Fused:
        """Let ONNX Runtime fuse a model as deployed. Raises `RLFlowError` when it refuses the model."""
        fused = fused_model(model)
        return cls(fused, tuple(map(Kernel.of, fused.graph.node)))


class Profile(NamedTuple):
    """Microseconds of each kernel (kernels,), of the whole model as it runs without a profile, and their error."""

    kernel_us: np.ndarray
    model_us: float
    sigma_us: float


def profile(fused: Fused, inputs: Mapping[str, np.ndarray], config: ProfileConfig = ProfileConfig()) -> Profile:
    """Time the kernels of a fused model. Raises `RLFlowError` when ONNX Runtime refuses the model, or stops."""
    named = ModelProto()
    named.CopyFrom(fused.model)
    for place, node in enumerate(named.graph.node):
        node.name = _NAME.format(place)
    kernel_us, model_us = [], []
    for _ in range(config.sessions):
        model_us.append(_plain_us(open_session(named, "as_written", config.threads), inputs, config))
        kernel_us.append(_profiled_us(named, inputs, config))
    whole_us = float(np.mean(model_us))
    sigma_us = float(np.std(model_us)) / math.sqrt(max(config.sessions - 1, 1))
    return Profile(adding_up_to(whole_us, np.mean(kernel_us, axis=0)), whole_us, sigma_us)


def _plain_us(session: ort.InferenceSession, inputs: Mapping[str, np.ndarray], config: ProfileConfig) -> float:
    return float(np.quantile(_runs_us(session, inputs, config), _QUIET))


def _profiled_us(model: ModelProto, inputs: Mapping[str, np.ndarray], config: ProfileConfig) -> np.ndarray:
    with scratch_folder() as folder:
        session = open_session(model, "as_written", config.threads, profile_prefix=str(folder / "profile"))
        _runs_us(session, inputs, config)
        events = json.loads(Path(session.end_profiling()).read_text())
    times = _by_run(events, len(model.graph.node))[1:]
    quiet: np.ndarray = np.quantile(times, _QUIET, axis=0)
    return quiet


def _runs_us(session: ort.InferenceSession, inputs: Mapping[str, np.ndarray], config: ProfileConfig) -> list[float]:
    """Run once to warm the session, then at least twice, and return what these runs took."""
    run(session, inputs)
    began = time.perf_counter()
    times: list[float] = []
    while len(times) < config.runs and (len(times) < 2 or time.perf_counter() - began < config.time_cap_s):
        start = time.perf_counter()
        run(session, inputs)
        times.append((time.perf_counter() - start) * 1e6)
    return times


def _by_run(events: list[dict[str, Any]], kernels: int) -> np.ndarray:
    """Return microseconds (runs, kernels). What runs in the body of a kernel is part of it already, and has no name."""
    starts = sorted(event["ts"] for event in events if event["name"] == _MODEL)
    times = np.zeros((len(starts), kernels))
    places = {_NAME.format(place) + _KERNEL: place for place in range(kernels)}
    for event in events:
        if event["name"] in places:
            times[bisect_right(starts, event["ts"]) - 1, places[event["name"]]] += event["dur"] + _ROUNDED_US
    return times


def adding_up_to(total: float, times: np.ndarray) -> np.ndarray:
    """Take the same off each time, or add it, but no more than a profile or a launch takes; then scale them to the sum.

    One session is up to 7 % faster than another one (docs/measurements.md, 1). Taken off each kernel alike, that would
    be most of what a kernel of microseconds takes inside a large model.
    """
    low, high = -_MOST_SHIFT_US, _MOST_SHIFT_US
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(times - middle, 0.0).sum() > total else (low, middle)
    shifted = np.maximum(times - high, 0.0)
    return shifted * (total / shifted.sum()) if shifted.any() else shifted
