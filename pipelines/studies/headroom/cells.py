"""The headroom of graphs: how much each method saves, and for what effort.

    row = call_isolated(limits, run_cell, cell)          one search, in a process of its own
    document = with_rows(published, {("bert", "analytic", "greedy"): row})

A cell is one method on one graph at one cost. Its process is its own, so that its peak memory is, too. One run gives
the improvement at every number of evaluations, read off its milestones: with milestones of 5 % after 40 evaluations and
6 % after 500, the row says 5 % at 100 and 6 % at 1000.

The invariant: a row's result has been replayed from its trajectory, and what was replayed is what was compared with the
original.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiment.comparison import ORIGINAL

from rlflow.cost.measured import MeasuredCost
from rlflow.equivalence.compare import compare
from rlflow.method import OptimisationResult
from rlflow.onnx_io import to_onnx
from rlflow.trajectory.replay import replay
from studies.runner import kept_rows
from studies.search_task import SearchTask, carried_out

GRACE_S = 600.0
"""Seconds beyond the time of a search: for reading and comparing models, and for steps that cannot be cut short."""

TIE_POINTS = 0.005
"""Percentage points by which results may differ and still be called the same: they are read with two decimals."""
_DECIMALS = 4

Row = dict[str, Any]
Key = tuple[str, str, str]
"""Graph, cost and method."""
Document = dict[str, dict[str, dict[str, Row]]]


@dataclass(frozen=True)
class Cell(SearchTask):
    """One search, and its report: the improvement so far is read after each number of `rewrites`.

    Prices that it measures go to the file of its context.
    """

    rewrites: tuple[int, ...]
    draws: int
    seed: int


def rows(cells: Mapping[Key, Cell], *, processes: int, folder: Path) -> Iterator[tuple[Key, Row]]:
    """Yield the rows of the cells as they come, so many at a time; the folder keeps them."""
    return kept_rows(cells, run_cell, lambda cell: (cell.budget.time_s or 0.0) + GRACE_S, processes, folder)


def run_cell(cell: Cell) -> Row:
    """Search with all rules of the library, replay what was found, and compare it with the original."""
    finding = carried_out(cell)
    memory_mb = _peak_memory_mb()
    if isinstance(finding.cost_model, MeasuredCost) and (prices := cell.subject.context.prices):
        finding.cost_model.price_list.save(prices)

    result = finding.result
    *_, replayed = replay(finding.graph, result.trajectory, finding.rewriter)
    report = compare(cell.subject.model, to_onnx(replayed), draws=cell.draws, seed=cell.seed)
    return figures(result, cell.rewrites) | {
        "memory_mb": memory_mb,
        "equivalent": report.equivalent,
        "draws": report.non_vacuous_draws,
        "max_relative_error": _finite(report.max_relative_error),
    }


def figures(result: OptimisationResult, rewrites: tuple[int, ...]) -> Row:
    """The figures of a search; what only a method with a bound can say is None for the others."""
    effort, optimality = result.effort, result.optimality
    return {
        "cost_before_ms": result.start_ms,
        "cost_after_ms": result.best_ms,
        "improvement_percent": round(result.improvement_percent, _DECIMALS),
        "steps": len(result.trajectory.steps),
        "evaluations": effort.rewrites,
        "prices_asked": effort.prices_asked,
        "prices_measured": effort.prices_measured,
        "wall_time_s": round(result.wall_time_s, _DECIMALS),
        "rewriting_s": round(effort.rewriting_s, _DECIMALS),
        "pricing_s": round(effort.pricing_s, _DECIMALS),
        "measuring_s": round(effort.measuring_s, _DECIMALS),
        "proven": optimality.proven if optimality else None,
        "gap_percent": _finite(optimality.gap_percent) if optimality else None,
        "limited_by": optimality.limited_by if optimality else None,
        "at": {str(most): _at(result, most) for most in rewrites},
    }


def with_rows(published: Document, rows: Mapping[Key, Row]) -> Document:
    """The published document with new rows in place of older ones, the trivial baseline, and the best known marked.

    Published rows that have other keys than the new ones are of an older schema and left behind.
    """
    keys = {*next(iter(rows.values())), "best_known"} if rows else set()
    document: Document = {}
    for graph, cost, method, row in _entries(published):
        if not rows or row.keys() == keys:
            document.setdefault(graph, {}).setdefault(cost, {})[method] = row
    for (graph, cost, method), row in rows.items():
        methods = document.setdefault(graph, {}).setdefault(cost, {ORIGINAL: _original(row)})
        methods[method] = row
    return {graph: {cost: _marked(methods) for cost, methods in costs.items()} for graph, costs in document.items()}


def _at(result: OptimisationResult, most: int) -> dict[str, float]:
    """The best after at most so many evaluations, and what it took to get there."""
    reached = [milestone for milestone in result.milestones if milestone.rewrites <= most]
    if not reached:
        return {"improvement_percent": 0.0, "prices_measured": 0, "wall_time_s": 0.0}
    best, start_ms = reached[-1], result.start_ms
    return {
        "improvement_percent": round(100.0 * (start_ms - best.runtime_ms) / start_ms if start_ms else 0.0, _DECIMALS),
        "prices_measured": best.prices_measured,
        "wall_time_s": round(best.wall_time_s, _DECIMALS),
    }


def _finite(value: float) -> float | None:
    """The value, or None in place of one that JSON does not know."""
    return value if math.isfinite(value) else None


def _entries(document: Document) -> list[tuple[str, str, str, Row]]:
    return [
        (graph, cost, method, row)
        for graph, costs in document.items()
        for cost, methods in costs.items()
        for method, row in methods.items()
    ]


def _original(row: Row) -> Row:
    """The row of doing nothing on the graph of `row`, which takes no process and needs no comparison."""
    nothing = dict.fromkeys(row, 0) | dict.fromkeys(("proven", "gap_percent", "limited_by", "memory_mb"))
    before_ms, at = row["cost_before_ms"], {most: dict.fromkeys(reached, 0) for most, reached in row["at"].items()}
    return nothing | {"cost_before_ms": before_ms, "cost_after_ms": before_ms, "equivalent": True, "at": at}


def _marked(methods: dict[str, Row]) -> dict[str, Row]:
    """The rows of one graph and cost with `best_known`; what computes something else is never the best."""
    best = max(row["improvement_percent"] for row in methods.values() if row["equivalent"])
    return {
        method: row | {"best_known": bool(row["equivalent"]) and row["improvement_percent"] >= best - TIE_POINTS}
        for method, row in methods.items()
    }


def _peak_memory_mb() -> float | None:
    """Peak resident memory of this process since it was started; None where the system does not tell.

    `ru_maxrss` is no substitute: on Linux it starts from the peak of the process that started this one.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024
