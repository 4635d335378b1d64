"""Speedups of RLFlow's models over their originals as ONNX Runtime optimises them, beside those of public tools.

    rivals = {"rlflow": Rival(Path("by_rlflow.onnx")), "ort_disable_all": Rival(original, "as_written")}
    timing = time_rivals(original, rivals, gate)
    timing.verdicts["rlflow"].ratio             above 1: faster than the original at ORT_ENABLE_ALL

All are timed in the same rounds, each twice, in fresh sessions that are opened in an order drawn anew. A verdict's
ratio is the median over rounds, its interval that of the sequential test, and its control the original over itself.
The best public tool is the one whose own ratio came out largest, so that noise favours it, never RLFlow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from rlflow.optimise.gate import GateConfig
from rlflow.runtime.session import Setting
from rlflow.runtime.timing.latency import countdown, latency_rounds, times_of
from rlflow.runtime.timing.sequential import SequentialTest
from rlflow.runtime.timing.verdict import Verdict, judge
from rlflow.schemas.figures import Figure
from studies.speedups.public_tools import Made

_ORIGINAL = "original"
_DECIMALS = 4


@dataclass(frozen=True)
class Rival:
    """A model to be timed against the original, and the setting in which it runs."""

    model: Path
    setting: Setting = "deployed"


@dataclass(frozen=True)
class RivalTiming:
    """The outcome of all rounds: the original's median milliseconds, and the verdict on each rival."""

    original_ms: float
    verdicts: Mapping[str, Verdict]
    retaken: int


def time_rivals(original: Path, rivals: Mapping[str, Rival], gate: GateConfig) -> RivalTiming:
    """Time the original, as deployed, and all rivals, until `gate.rounds` are done or `gate.time_s` is over."""
    twice = {_ORIGINAL: Rival(original)} | dict(rivals)
    sessions = {f"{name}{again}": rival for name, rival in twice.items() for again in ("", " again")}
    endless = latency_rounds(
        {name: rival.model for name, rival in sessions.items()},
        setting={name: rival.setting for name, rival in sessions.items()},
        runs_per_round=gate.runs_per_round,
        threads=gate.threads,
        seed=gate.seed,
        dimensions=gate.dimensions,
        left_s=countdown(gate.time_s),
    )
    with closing(endless):
        rounds = list(islice(endless, gate.rounds))
    times_ms = times_of(rounds)
    pairs = {name: np.stack([times_ms[name], times_ms[f"{name} again"]], axis=1) for name in twice}
    return RivalTiming(
        original_ms=float(np.median(pairs[_ORIGINAL])),
        verdicts={name: judge(pairs[_ORIGINAL], pairs[name], proof=SequentialTest()) for name in rivals},
        retaken=sum(each.retaken for each in rounds),
    )


def is_met(verdict: Verdict, target: float) -> bool:
    """True if a gain (a target above 1) was measured; for a target of 1, if the interval does not rule it out."""
    return verdict.ratio >= target if target > 1 else verdict.high >= target


def of_timing(verdict: Verdict) -> dict[str, Any]:
    """The figures of one verdict; the interval is None where there were too few rounds for one."""
    interval = [round(verdict.low, _DECIMALS), round(verdict.high, _DECIMALS)] if verdict.bounded else None
    return {"ratio": round(verdict.ratio, _DECIMALS), "ratio_interval": interval}


def of_tool(made: Made, verdict: Verdict | None) -> dict[str, Any]:
    """The figures of a public tool; None stands for those that a tool without a model does not have."""
    nothing = {"ratio": None, "ratio_interval": None}
    return {
        "version": made.version,
        "tool_s": round(made.wall_time_s, _DECIMALS),
        "failure": made.failure,
        "max_relative_error": None if made.equivalence is None else made.equivalence.max_relative_error,
        "draws": 0 if made.equivalence is None else made.equivalence.non_vacuous_draws,
    } | (nothing if verdict is None else of_timing(verdict))


def of_report(report: Mapping[str, Any], wall_time_s: float) -> dict[str, Any]:
    """The doings of RLFlow by the report of its command: every rule that it applied, the most frequent first."""
    counted = Counter(step["rule"] for step in report["steps"])
    own = next(iter(report["latency"].values()), None)
    return {
        "budget_wall_time_s": round(wall_time_s, _DECIMALS),
        "written": report["written"],
        "reason": report["reason"],
        "rewrites": [{"rule": report["rule_names"][rule], "count": count} for rule, count in counted.most_common()],
        "improvement_percent": round(report["improvement_percent"], _DECIMALS),
        "own_ratio": own["ratio"] if own else None,
        "max_relative_error": report["equivalence"]["max_relative_error"],
        "tolerance": report["equivalence"]["tolerance"],
        "draws": report["equivalence"]["non_vacuous_draws"],
    }


def best_tool(tools: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """The tool of the largest ratio, with its interval; None if none has a model."""
    timed = {name: figures for name, figures in tools.items() if figures["ratio"] is not None}
    if not timed:
        return None
    name = max(timed, key=lambda name: timed[name]["ratio"])
    return {"name": name, "ratio": timed[name]["ratio"], "ratio_interval": timed[name]["ratio_interval"]}


def summary(models: Mapping[str, Mapping[str, Any]], budget_s: float) -> dict[str, Any]:
    """Return the document of schema `speedups`. To do nothing meets the targets of 1 alone."""
    met = sum(row["met"] for row in models.values()) / len(models)
    by_nothing = sum(row["target"] <= 1 for row in models.values()) / len(models)
    figure = Figure(met, by_nothing, "do_nothing", len(models)).to_json()
    return {"budget_s": budget_s, "targets_met": figure, "models": dict(models)}
