"""Budgets that hold: the wall time of `rlflow optimise`, and what it finds, against the budget that it was given.

    run = run_command(Command(model, 15.0))       a fresh process with an empty cache of prices
    document = summary({"bert": {"15": run, ...}}, Allowance(), long="600")

Wall time is that of the whole process, from before Python starts until it has ended: reading and writing are in it. A
budget holds if it ends within `Allowance`: at 1.2 times the budget and 5 seconds, for what cannot be cut short.

What a run finds is measured by the improvement that the search predicts for its result, which depends on no clock,
as a share of what a long run of the same command finds: 4 % of 5 % is a share of 80. It is delivered if checks and
timing came to an end within the budget, and confirmed it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rlflow.errors import RLFlowError
from rlflow.runtime.scratch import scratch_folder
from rlflow.runtime.timing.latency import compare_latency, countdown
from rlflow.schemas.figures import Figure
from studies.busy_loops import beside_busy_loops
from studies.figures import MeasuredRatio

Run = dict[str, Any]
Key = tuple[str, str]
"""Model and budget."""
Runs = Mapping[str, Mapping[str, Run]]
"""Runs of models by their names, and by their budgets in seconds, written without a point where there is none."""

_DECIMALS = 3
_LEAST_PERCENT = 0.05
"""What a run must find for it to count as something."""
_SLOWER = 0.01
"""By so much may what is delivered be slower than its original."""
_OPTIMISED = "optimised"


@dataclass(frozen=True)
class Allowance:
    """The wall time that a budget admits: `factor` times the budget and `seconds`."""

    factor: float = 1.2
    seconds: float = 5.0

    def admits(self, wall_time_s: float, budget_s: float) -> bool:
        return wall_time_s <= self.factor * budget_s + self.seconds


@dataclass(frozen=True)
class Afterwards:
    """Each delivered model runs beside its original in so many `rounds`, or as many as fit into `time_s`."""

    rounds: int = 40
    time_s: float = 20.0


_AS_OTHERS = ("--threads", "1", "--default-options")


class Command(NamedTuple):
    """A model to be optimised, and the budget."""

    model: Path
    budget_s: float


def run_command(command: Command, afterwards: Afterwards = Afterwards(), busy_loops: int = 0) -> Run:
    """Return the figures of `optimise_by_command` and of what it delivered, and throw the model away.

    The command runs beside so many busy loops, what it delivered without them.
    """
    with scratch_folder() as folder:
        output = folder / "out.onnx"
        with beside_busy_loops(busy_loops):
            report, wall_time_s = optimise_by_command(command.model, output, command.budget_s)
        row = _row(report, wall_time_s, command.budget_s)
        beside = _run_beside(command.model, output, afterwards) if _is_delivered(row) else None
        return row | {"afterwards": beside}


def _run_beside(original: Path, delivered: Path, config: Afterwards) -> dict[str, Any]:
    times_ms = compare_latency(
        {"original": original, "delivered": delivered},
        setting="deployed",
        rounds=config.rounds,
        left_s=countdown(config.time_s),
    )
    ratio = MeasuredRatio.of(times_ms["original"], times_ms["delivered"])
    return ratio.to_json() | {"rounds": len(times_ms["original"])}


def optimise_by_command(model: Path, output: Path, budget_s: float) -> tuple[dict[str, Any], float]:
    """Optimise a model by the command, as all studies time models; return its report and the seconds of the process.

    Raises `RLFlowError` with the command's words if it fails.
    """
    with scratch_folder() as folder:
        options = ["-o", str(output.resolve()), "--budget", f"{budget_s:g}s", "--json", *_AS_OTHERS]
        command = [sys.executable, "-m", "rlflow", "optimise", str(model.resolve()), *options]
        environment = os.environ | {"XDG_CACHE_HOME": str(folder), "OMP_NUM_THREADS": "1"}
        started = time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        wall_time_s = time.perf_counter() - started
    if done.returncode:
        raise RLFlowError(f"{model} at {budget_s:g} s ended with exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout), wall_time_s


def _row(report: Mapping[str, Any], wall_time_s: float, budget_s: float) -> Run:
    latency = next(iter(report["latency"].values()), None)
    return {
        "wall_time_s": round(wall_time_s, _DECIMALS),
        "wall_time_ratio": round(wall_time_s / budget_s, _DECIMALS),
        "search_s": round(report["optimisation_s"], _DECIMALS),
        "improvement_percent": round(report["improvement_percent"], _DECIMALS),
        "prices_measured": report["prices_measured"],
        "draws": report["equivalence"]["non_vacuous_draws"],
        "rounds": latency["rounds"] if latency else 0,
        "latency_ratio": latency["ratio"] if latency else None,
        "written": report["written"],
        "reason": report["reason"],
    }


def summary(runs: Runs, allowance: Allowance, long: str) -> dict[str, Any]:
    """Return the document of schema `budgets`: every run, and by budget how many held and what share they found."""
    budgets = dict.fromkeys(budget for by_budget in runs.values() for budget in by_budget)
    return {
        "allowance": vars(allowance),
        "long_s": float(long),
        "models": {name: _with_shares(by_budget, allowance, long) for name, by_budget in runs.items()},
        "budgets": {budget: _of_budget(runs, budget, allowance, long) for budget in budgets},
    }


def _with_shares(by_budget: Mapping[str, Run], allowance: Allowance, long: str) -> dict[str, Run]:
    found = by_budget.get(long, {}).get("improvement_percent")
    return {
        budget: run
        | {
            "holds": allowance.admits(run["wall_time_s"], float(budget)),
            "share_percent": _share_percent(run, found),
        }
        for budget, run in by_budget.items()
    }


def _share_percent(run: Run, found_by_long: float | None) -> float | None:
    """The share of what a long run found; None where that is next to nothing, or there was none."""
    if found_by_long is None or found_by_long < _LEAST_PERCENT:
        return None
    return round(100.0 * run["improvement_percent"] / found_by_long, _DECIMALS)


def _of_budget(runs: Runs, budget: str, allowance: Allowance, long: str) -> dict[str, Any]:
    of_it = [_with_shares(by_budget, allowance, long)[budget] for by_budget in runs.values() if budget in by_budget]
    with_long = [by_budget for by_budget in runs.values() if budget in by_budget and long in by_budget]
    shares = [run["share_percent"] for run in of_it if run["share_percent"] is not None]
    kept = sum(run["holds"] for run in of_it)
    figures = {
        "holding": Figure(kept / len(of_it), 1.0, "do_nothing", len(of_it)).to_json(),
        "longest_ratio": max(run["wall_time_ratio"] for run in of_it),
    }
    if found := [run for run in of_it if run["improvement_percent"] >= _LEAST_PERCENT]:
        figures["delivered"] = _share_of(found, _is_delivered)
    if delivered := [run for run in of_it if _is_delivered(run)]:
        figures["slower"] = _share_of(delivered, _is_slower)
    if worth_it := [runs[budget] for runs in with_long if _is_delivered(runs[long])]:
        figures["delivered_of_long"] = _share_of(worth_it, _is_delivered)
    if shares:
        figures["share_percent"] = Figure(median(shares), 0.0, "do_nothing", len(shares)).to_json()
    return figures


def _share_of(runs: Sequence[Run], holds: Callable[[Run], bool]) -> dict[str, Any]:
    return Figure(sum(map(holds, runs)) / len(runs), 0.0, "do_nothing", len(runs)).to_json()


def _is_delivered(run: Run) -> bool:
    return bool(run["written"] == _OPTIMISED)


def _is_slower(run: Run) -> bool:
    return bool(run["afterwards"]["value"] < 1 - _SLOWER)
