"""End-to-end latency of several models against each other.

A model that is opened twice runs at two speeds (by where its pages lie: up to 7 % on small models,
docs/measurements.md, 1), and a machine drifts. So each round opens a fresh session of every model, one after another in
an order that rotates, and only ratios within a round are compared.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import ModelProto

from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.inputs import draw_inputs, required_inputs
from rlflow.runtime.session import Setting, open_session, run, structure_of

_WARM_UP_RUNS = 2


def compare_latency(
    models: Mapping[str, ModelProto | Path],
    *,
    setting: Setting,
    rounds: int = 10,
    runs_per_round: int = 10,
    threads: int = 1,
    seed: int = 0,
    dimensions: Mapping[str, int] | None = None,
    on_round: Callable[[int], None] | None = None,
) -> dict[str, np.ndarray]:
    """Return the median milliseconds of a run, by model: arrays (rounds,) whose k-th entries were measured together.

    All models get the same inputs, drawn once from the first with `seed` and `dimensions`. Each round opens a
    fresh session of one model at a time (so memory holds one), warms it up, times `runs_per_round` runs and
    closes it. `on_round` receives the number of rounds done.

    Raises `InputError` when there is nothing to measure, `RLFlowError` when the models' inputs differ or one does not
    run.
    """
    if not models or rounds < 1 or runs_per_round < 1:
        raise InputError(f"nothing to time: {len(models)} models, {rounds} rounds, {runs_per_round} runs per round")

    inputs = _shared_inputs(models, np.random.default_rng(seed), dimensions)
    names = list(models)
    times: dict[str, list[float]] = {name: [] for name in names}
    for done in range(rounds):
        for name in np.roll(names, -done).tolist():
            session = open_session(models[name], setting, threads)
            times[name].append(_median_run_ms(session, inputs, runs_per_round))
            del session  # before the next one is opened, so that memory holds one
        if on_round is not None:
            on_round(done + 1)
    return {name: np.array(values) for name, values in times.items()}


def _median_run_ms(session: ort.InferenceSession, inputs: dict[str, np.ndarray], runs: int) -> float:
    for _ in range(_WARM_UP_RUNS):
        run(session, inputs)
    times_ns = []
    for _ in range(runs):
        start = time.perf_counter_ns()
        session.run(None, inputs)
        times_ns.append(time.perf_counter_ns() - start)
    return float(np.median(times_ns)) / 1e6


def _shared_inputs(
    models: Mapping[str, ModelProto | Path], rng: np.random.Generator, dimensions: Mapping[str, int] | None
) -> dict[str, np.ndarray]:
    reference, *others = models
    inputs = draw_inputs(structure_of(models[reference]), rng, dimensions)
    for name in others:
        expected = {value.name for value in required_inputs(structure_of(models[name]))}
        if expected != set(inputs):
            raise RLFlowError(f"{name} takes inputs {sorted(expected)}, {reference} takes {sorted(inputs)}")
    return inputs
