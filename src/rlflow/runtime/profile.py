"""The kernels that a model runs as, with the time of each, as ONNX Runtime's own profile tells them.

    for kernel, us in profile(model, draw_inputs(model, rng))[-1]:
        kernel.operator, kernel.results         # "Gemm", ("float[128, 2304]",)

ONNX Runtime chooses the kernels when it has seen the whole model, so only its profile says what runs, and what that
takes with warm and cold memory as it is inside the model. The profile itself costs some microseconds a kernel.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from onnx import ModelProto

from rlflow.runtime.scratch import scratch_folder
from rlflow.runtime.session import Setting, open_session, run

_KERNEL, _MODEL = "_kernel_time", "model_run"


class Kernel(NamedTuple):
    """An operator as it runs: its name, and the types and shapes of its operands and results in words."""

    operator: str
    operands: tuple[str, ...]
    results: tuple[str, ...]


class KernelTime(NamedTuple):
    """A kernel and its microseconds in one run."""

    kernel: Kernel
    us: float


def profile(
    model: ModelProto | Path,
    inputs: Mapping[str, np.ndarray],
    *,
    setting: Setting = "deployed",
    threads: int = 1,
    runs: int = 1,
) -> list[list[KernelTime]]:
    """Run `model` several times; return for each run the kernels in their order, none of them those of a body.

    Raises `RLFlowError` when ONNX Runtime refuses the model, or stops.
    """
    with scratch_folder() as folder:
        session = open_session(model, setting, threads, profile_prefix=str(folder / "profile"))
        for _ in range(runs):
            run(session, inputs)
        events = json.loads(Path(session.end_profiling()).read_text())
    return _by_run(events)


def _by_run(events: list[dict[str, Any]]) -> list[list[KernelTime]]:
    """Sort events by the run in which they begin. Times are whole microseconds, and a kernel may take none."""
    kernels = sorted((e for e in events if e["name"].endswith(_KERNEL)), key=lambda e: (e["ts"], -e["dur"]))
    starts = sorted(e["ts"] for e in events if e["name"] == _MODEL)
    runs: list[list[dict[str, Any]]] = [[] for _ in starts]
    for event in kernels:
        runs[bisect_right(starts, event["ts"]) - 1].append(event)
    return [list(_outermost(run)) for run in runs]


def _outermost(kernels: Iterable[dict[str, Any]]) -> Iterator[KernelTime]:
    """Yield kernels in the order in which they begin, without those inside of another one: of a loop's body."""
    outer: dict[str, Any] | None = None
    for event in kernels:
        if outer is None or event["ts"] >= outer["ts"] + outer["dur"]:
            outer, told = event, event["args"]
            kernel = Kernel(told["op_name"], _in_words(told["input_type_shape"]), _in_words(told["output_type_shape"]))
            yield KernelTime(kernel, event["dur"])


def _in_words(values: list[dict[str, list[int]]]) -> tuple[str, ...]:
    return tuple(f"{dtype}{shape}" for value in values for dtype, shape in value.items())
