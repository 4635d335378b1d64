"""The rows of `learned` taken together: the gap that is closed, the aims, and when training has paid for itself.

    document = summary(rows, readings=(500, 2000), long=10_000)
    document["gap_closed"]["2000"]["rlflow"]             {"share": 0.8, "share_ci95": [0.7, 0.9], "graphs": 9, ...}

A share of the gap is averaged over graphs first, for each seed by itself, so that its interval is that of a study with
other seeds on the same graphs. Those are the graphs that have a gap and on which the learned method has all its seeds.
Training has paid for itself after so many graphs as it takes for the effort that is saved on each to add up to that of
training, compared with the method that reaches the same saving with least effort.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from studies.learned.cells import (
    LEARNED,
    TAUGHT,
    TRAINED,
    Row,
    Rows,
    mean_ci95,
    mean_figures,
    saved_percent_by_prices,
)

BACKTRACKING = "backtracking"
_DECIMALS = 4
_SAME_POINTS = 0.005
"""Percentage points by which savings may differ and still be called the same."""


def summary(rows: Rows, readings: Sequence[int], long: int, headless: Sequence[str]) -> dict[str, Any]:
    """Return the document of schema `learned_summary`.

    long: the evaluations that backtracking may have; headless: the graphs on which greedy search is hardly beaten.
    """
    compared = _compared(rows)
    return {
        "best_known": {graph: _best_known(rows, graph) for graph in rows.graphs},
        "compared": compared,
        "gap_closed": {str(evaluations): _shares(rows, compared, evaluations) for evaluations in readings},
        "beyond_backtracking": _beyond_backtracking(rows, max(readings), long),
        "share_of_best": _share_of_best(rows, headless, max(readings)),
        "below_greedy": _below_greedy(rows),
        "training": {graph: _training(rows, graph, max(readings)) for graph in rows.graphs if rows.of(graph, LEARNED)},
    }


def _best_known(rows: Rows, graph: str) -> Row:
    most, method = rows.best_known(graph)
    greedy = rows.greedy(graph)
    return {
        "improvement_percent": round(most, _DECIMALS),
        "method": method,
        "greedy_percent": round(greedy["improvement_percent"], _DECIMALS),
        "greedy_evaluations": greedy["evaluations"],
        "vacuous": rows.gap_closed(graph, most) is None,
    }


def _compared(rows: Rows) -> list[str]:
    """The graphs that have a gap, and rows of the learned method by as many seeds as any other graph."""
    seeds = {graph: len(rows.of(graph, LEARNED)) for graph in rows.graphs if rows.gap_closed(graph, 0.0) is not None}
    most = max(seeds.values(), default=0)
    return [graph for graph, number in seeds.items() if number == most > 0]


def _shares(rows: Rows, compared: Sequence[str], evaluations: int) -> dict[str, Row]:
    """The share of the gap that each method closes, over those graphs on which it has a row."""
    methods = dict.fromkeys(method for graph in compared for method in rows.methods(graph))
    found = {method: _share(rows, compared, method, evaluations) for method in methods}
    return {method: share for method, share in found.items() if share is not None}


def _share(rows: Rows, compared: Sequence[str], method: str, evaluations: int) -> Row | None:
    by_graph = {
        graph: {
            seed: rows.gap_closed(graph, rows.at(graph, row, evaluations)) or 0.0
            for seed, row in rows.of(graph, method).items()
        }
        for graph in compared
        if rows.of(graph, method)
    }
    seeds = sorted(set.intersection(*(set(shares) for shares in by_graph.values()))) if by_graph else []
    if not seeds:
        return None
    shares = [fmean(of_graph[seed] for of_graph in by_graph.values()) for seed in seeds]
    return mean_figures("share", shares, method in rows.seeded) | {"graphs": len(by_graph), "seeds": seeds}


def _beyond_backtracking(rows: Rows, evaluations: int, long: int) -> dict[str, dict[str, Row]]:
    """Return by how many points a trained policy is beyond backtracking, which has more evaluations."""
    differences = {}
    for graph in rows.graphs:
        if beside := rows.of(graph, BACKTRACKING):
            other = fmean(rows.at(graph, row, long) for row in beside.values())
            differences[graph] = {
                method: mean_figures("points", [rows.at(graph, row, evaluations) - other for row in by_seed.values()])
                for method, by_seed in _trained(rows, graph).items()
            }
    return differences


def _share_of_best(rows: Rows, headless: Sequence[str], evaluations: int) -> dict[str, dict[str, float]]:
    """Return what a trained policy saves as a share of the best known, greedy search's part included."""
    shares = {}
    for graph in [graph for graph in rows.graphs if graph in headless]:
        most, _ = rows.best_known(graph)
        if most > 0:
            shares[graph] = {
                method: round(fmean(rows.at(graph, row, evaluations) for row in by_seed.values()) / most, _DECIMALS)
                for method, by_seed in _trained(rows, graph).items()
            }
    return shares


def _trained(rows: Rows, graph: str) -> dict[str, dict[int, Row]]:
    """The rows of the methods that go by a trained policy, of those that there are."""
    by_method = {method: rows.of(graph, method) for method in TRAINED}
    return {method: by_seed for method, by_seed in by_method.items() if by_seed}


def _below_greedy(rows: Rows) -> list[str]:
    """The graphs on which a trained policy ended below greedy search by any seed; there should be none."""
    return [
        graph
        for graph in rows.graphs
        if any(
            row["improvement_percent"] < rows.greedy(graph)["improvement_percent"] - 1e-6
            for by_seed in _trained(rows, graph).values()
            for row in by_seed.values()
        )
    ]


def _training(rows: Rows, graph: str, evaluations: int) -> Row:
    """Return what training took, and after how many graphs as this one it has paid for itself; None: never."""
    learned = rows.of(graph, LEARNED)
    wanted = min(rows.at(graph, row, evaluations) for row in learned.values()) - _SAME_POINTS
    own = _effort(learned, wanted)
    assert own is not None, "what is wanted is what all seeds reach"
    others = {
        method: effort
        for method in rows.methods(graph)
        if method not in TAUGHT and (effort := _effort(rows.of(graph, method), wanted)) is not None
    }
    spent = {name: fmean(row[f"training_{name}"] for row in learned.values()) for name in ("s", "evaluations")}
    return {
        "training_s": round(spent["s"], _DECIMALS),
        "training_evaluations": round(spent["evaluations"]),
        "saving_percent": round(wanted, _DECIMALS),
        "evaluations": _payback(own["evaluations"], spent["evaluations"], _of(others, "evaluations")),
        "seconds": _payback(own["s"], spent["s"], _of(others, "s")),
    }


def _of(others: Mapping[str, Mapping[str, float]], name: str) -> dict[str, float]:
    return {method: effort[name] for method, effort in others.items()}


def _effort(by_seed: Mapping[int, Row], wanted: float) -> dict[str, float] | None:
    """The mean effort after which all seeds have saved so much; None if one of them never has."""
    reached = [
        next((milestone for milestone in row["milestones"] if milestone[3] >= wanted), None) for row in by_seed.values()
    ]
    known = [milestone for milestone in reached if milestone is not None]
    if len(known) < len(reached):
        return None
    return {"evaluations": fmean(one[0] for one in known), "s": fmean(one[2] for one in known)}


def _payback(own: float, training: float, others: Mapping[str, float]) -> Row:
    """The cheapest other method, both efforts, and after how many graphs training has paid for itself."""
    against = min(others, key=others.__getitem__, default=None)
    saved = others[against] - own if against else 0.0
    return {
        "own": round(own, _DECIMALS),
        "against": against,
        "others": round(others[against], _DECIMALS) if against else None,
        "graphs": math.ceil(training / saved) if saved > 0 else None,
    }


def curves(rows: Rows, steps: Sequence[int], most: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    """Return the document of schema `curves`: what each method has saved on each graph after so many evaluations.

    most: the evaluations that a method may have. One that draws has two more curves, the ends of its interval.
    """
    drawn = {}
    for graph in rows.graphs:
        own = {method: [step for step in steps if step <= most[method]] for method in rows.methods(graph)}
        drawn[graph] = _curves(rows, graph, "evaluations past greedy", own, partial(rows.at, graph))
    return drawn


def curves_by_prices(rows: Rows, steps: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Return as `curves` what each method has saved when it had measured so many prices, of which it had none at first.

    There are curves of those graphs alone whose prices are measured.
    """
    return {
        graph: _curves(
            rows, graph, "prices measured", dict.fromkeys(rows.methods(graph), steps), saved_percent_by_prices
        )
        for graph in rows.graphs
        if rows.greedy(graph)["prices_measured"]
    }


def _curves(
    rows: Rows, graph: str, step_name: str, steps: Mapping[str, Sequence[int]], saved: Callable[[Row, int], float]
) -> dict[str, Any]:
    """The mean over seeds of what each method had `saved` at its steps, and both ends of its interval if it has one."""
    lines: dict[str, Any] = {}
    for method, own in steps.items():
        found = [mean_ci95([saved(row, step) for row in rows.of(graph, method).values()]) for step in own]
        axis = {"unit": "%", "step_name": step_name, "step": list(own)}
        values = {method: [mean for mean, _ in found]}
        if all(interval for _, interval in found):
            ends = [interval for _, interval in found if interval]
            values |= {f"{method}, low": [low for low, _ in ends], f"{method}, high": [high for _, high in ends]}
        lines |= {name: axis | {"value": [round(value, _DECIMALS) for value in line]} for name, line in values.items()}
    return lines
