"""The last gate: no model leaves that computes something else, and none is called faster that is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto

from rlflow.errors import EquivalenceError, InputError, RLFlowError
from rlflow.evaluation.fault import Derivation, explain
from rlflow.evaluation.report import LatencyChange
from rlflow.evaluation.statistics import beyond_noise
from rlflow.runtime.equivalence import EquivalenceReport, compare, drawn_inputs
from rlflow.runtime.inputs import symbolic_dimensions
from rlflow.runtime.latency import compare_latency, ratio
from rlflow.runtime.session import SETTINGS, Setting, structure_of
from rlflow.runtime.tolerance import draws_at_random, tolerance_of


@dataclass(frozen=True)
class DeliveryConfig:
    """How a result is checked and timed: inputs drawn, rounds of fresh sessions, runs in each."""

    draws: int = 3
    rounds: int = 7
    runs_per_round: int = 5
    threads: int = 1
    seed: int = 0
    dimensions: Mapping[str, int] | None = None


def judgeable(original: ModelProto | Path, config: DeliveryConfig) -> tuple[EquivalenceReport, str]:
    """The model compared with itself, and why nothing could be said of a rewritten one, or ""."""
    structure = structure_of(original)
    open_sizes = [name for name in symbolic_dimensions(structure) if name not in (config.dimensions or {})]
    unknown = EquivalenceReport(True, "", 0.0, 0.0, tolerance_of(structure), config.draws, non_vacuous_draws=0)
    if open_sizes:
        wanted = " ".join(", ".join(open_sizes).split())  # a name may be of several lines
        return unknown, f"its sizes {wanted} are open: name the shapes that you run it with, as in --shape x=1x128"
    try:
        own = _compared(original, original, config)
    except InputError:
        raise
    except RLFlowError as error:
        return unknown, f"it could not be tried here: {error}"
    if not own.equivalent or draws_at_random(structure):
        return unknown, "its outputs change from run to run, so that no other model could be compared with it"
    if not own.non_vacuous_draws:
        return own, "no drawn input gave outputs that could tell a wrong model from a right one"
    return own, ""


def check(derivation: Derivation, config: DeliveryConfig, reproducer: Path | None = None) -> EquivalenceReport:
    """The report of an equivalent candidate; otherwise `EquivalenceError` naming the first wrong step, its rule and the
    values that it replaced, and what shows the difference is written to the folder `reproducer`, if one is given.
    """
    report = _compared(derivation.original, derivation.candidate, config)
    if report.equivalent:
        return report
    drawn = drawn_inputs(derivation.original, draws=config.draws, seed=config.seed, dimensions=config.dimensions)
    what = explain(derivation, report, drawn, reproducer)
    raise EquivalenceError(f"the rewritten model is {report.summary}; {what}; no model was written")


def _compared(original: ModelProto | Path, candidate: ModelProto | Path, config: DeliveryConfig) -> EquivalenceReport:
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
