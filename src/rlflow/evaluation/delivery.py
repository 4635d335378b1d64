"""The last gate: no model leaves that computes something else, and none is called faster that is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto

from rlflow.errors import EquivalenceError, InputError, RLFlowError
from rlflow.evaluation.report import LatencyChange
from rlflow.evaluation.statistics import beyond_noise
from rlflow.ir.graph import Graph
from rlflow.optimiser import OptimisationResult
from rlflow.rules.rewriter import Rewriter
from rlflow.runtime.equivalence import EquivalenceReport, compare
from rlflow.runtime.inputs import symbolic_dimensions
from rlflow.runtime.latency import compare_latency, ratio
from rlflow.runtime.session import SETTINGS, Setting
from rlflow.runtime.tolerance import draws_at_random, tolerance_of
from rlflow.trajectory.bisect import first_wrong_step


@dataclass(frozen=True)
class DeliveryConfig:
    """How a result is checked and timed: inputs drawn, rounds of fresh sessions, runs in each."""

    draws: int = 3
    rounds: int = 7
    runs_per_round: int = 5
    threads: int = 1
    seed: int = 0
    dimensions: Mapping[str, int] | None = None


def judgeable(original: ModelProto, config: DeliveryConfig) -> tuple[EquivalenceReport, str]:
    """The model compared with itself, and why nothing could be said of a rewritten one, or ""."""
    open_sizes = [name for name in symbolic_dimensions(original) if name not in (config.dimensions or {})]
    unknown = EquivalenceReport(True, "", 0.0, 0.0, tolerance_of(original), config.draws, non_vacuous_draws=0)
    if open_sizes:
        wanted = ", ".join(open_sizes)
        return unknown, f"its sizes {wanted} are open: name the shapes that you run it with, as in --shape x=1x128"
    try:
        own = _compared(original, original, config)
    except InputError:
        raise
    except RLFlowError as error:
        return unknown, f"it could not be tried here: {error}"
    if not own.equivalent or draws_at_random(original):
        return unknown, "its outputs change from run to run, so that no other model could be compared with it"
    if not own.non_vacuous_draws:
        return own, "no drawn input gave outputs that could tell a wrong model from a right one"
    return own, ""


def check(
    original: ModelProto,
    candidate: ModelProto,
    graph: Graph,
    result: OptimisationResult,
    rewriter: Rewriter,
    config: DeliveryConfig,
) -> EquivalenceReport:
    """The report of an equivalent candidate; `EquivalenceError` naming the first wrong step and its rule otherwise."""
    report = _compared(original, candidate, config)
    if report.equivalent:
        return report
    wrong = first_wrong_step(graph, result.trajectory, rewriter, draws=config.draws, seed=config.seed)
    place = f"step {wrong[0]}, rule {wrong[1].rule} at location {wrong[1].location}" if wrong else "import and export"
    raise EquivalenceError(f"the optimised model is {report.summary}; it broke at {place}; nothing was written")


def _compared(original: ModelProto, candidate: ModelProto, config: DeliveryConfig) -> EquivalenceReport:
    return compare(
        original,
        candidate,
        draws=config.draws,
        seed=config.seed,
        threads=config.threads,
        dimensions=config.dimensions,
    )


def time_models(
    models: Mapping[str, ModelProto], config: DeliveryConfig, on_round: Callable[[int], None] | None = None
) -> dict[Setting, dict[str, np.ndarray]]:
    """Milliseconds (rounds,) of every model in both settings, in alternating fresh sessions."""
    return {
        setting: compare_latency(
            models,
            setting=setting,
            rounds=config.rounds,
            runs_per_round=config.runs_per_round,
            threads=config.threads,
            seed=config.seed,
            dimensions=config.dimensions,
            on_round=on_round,
        )
        for setting in SETTINGS
    }


def latency_changes(
    times_ms: Mapping[Setting, Mapping[str, np.ndarray]], before: str, after: str
) -> dict[Setting, LatencyChange]:
    """How `after` compares with `before` in each setting."""
    return {
        setting: LatencyChange(
            float(np.median(times[before])), float(np.median(times[after])), ratio(times[before], times[after])
        )
        for setting, times in times_ms.items()
    }


def is_faster(latency: Mapping[Setting, LatencyChange], setting: Setting) -> bool:
    """Beyond the noise of the measurement, in the setting that was optimised for."""
    measured = latency[setting].ratio
    return beyond_noise(measured) and measured.value > 1.0
