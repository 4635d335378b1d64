"""The worth of predicted prices to a search: its result, priced by measurement, beside that of a measured search.

    row = call_isolated(limits, run_case, case)          one graph and method: a search for each of `COSTS`
    document = summary({("bert", "greedy"): row, ...}, Aims())

All that the searches found is priced by the list that the measured search has left, to which what is missing is added.
If that search saves 2.0 ms of a graph, and what the predicted one found costs 1.9 ms less than the original, then the
predicted one found a share of 0.95. A search picks what its own prices flatter, and the list is that of the measured
one: so everything is priced once more `anew`, by the mean of lists that no search has seen.

Doing nothing finds a share of 0 of what can be found, and what the roofline's prices find is the baseline between.

Invariant: within a row the search differs in its prices alone, and each begins with none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, median
from typing import Any

from rlflow.cost.base import CostModel
from rlflow.cost.measured import MeasuredCost
from rlflow.cost.price_list import PriceList
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from studies.figures import nested
from studies.search_task import Finding, SearchTask, carried_out

PREDICTED, ANALYTIC, MEASURED = "predicted", "analytic", "measured"
COSTS = (PREDICTED, ANALYTIC, MEASURED)
"""The prices by which a graph is searched, in this order: the first search finds nothing warm, and is timed so."""
FROZEN, ANEW = "frozen", "anew"

_DECIMALS = 6

Row = dict[str, Any]
Key = tuple[str, str]
"""Graph and method."""


@dataclass(frozen=True)
class Case:
    """One graph and method: a search for each of `COSTS`, alike but for its prices.

    What a search changes counts if it is more than `sigmas` times its noise. `lists` are those that are begun anew.
    """

    tasks: Mapping[str, SearchTask]
    sigmas: float
    lists: int


@dataclass(frozen=True)
class Aims:
    """The share of what the measured search saves that another is to find, and the part of its time for that."""

    share: float = 0.95
    time: float = 0.05


def run_case(case: Case) -> Row:
    """Search by all prices, and price what was found by measured ones; `PriceError` if these cannot be had.

    `InputError` if what is called measured is not.
    """
    found = {cost: carried_out(case.tasks[cost]) for cost in COSTS}
    task, original = case.tasks[MEASURED], found[MEASURED].graph
    best = {cost: finding.result.best for cost, finding in found.items()}
    return {
        "searches": {cost: _search(finding) for cost, finding in found.items()},
        FROZEN: priced(_measuring(found[MEASURED].cost_model), original, best, case.sigmas),
        ANEW: priced(_anew(task, [original, *best.values()], case.lists), original, best, case.sigmas),
    }


def _anew(task: SearchTask, graphs: Sequence[Graph], lists: int) -> MeasuredCost:
    """Return the cost model by the mean of so many lists, each begun for these graphs."""
    models = [_measuring(task.subject.prices()) for _ in range(lists)]
    for model in models:
        model.measure(graphs)
        for graph in graphs:
            model.runtime_ms(graph)  # refuses where a price could not be measured
    reorders = models[0].reordering.config if models[0].reordering else None
    prices = averaged([model.price_list for model in models])
    return MeasuredCost(models[0].setting, prices, None, task.subject.context.dimensions, reorders)


def averaged(lists: Sequence[PriceList]) -> PriceList:
    """Return the mean of lists that know the same prices, with what noise that has.

    Each list is at its own pace, which changes none of its ratios.
    """
    prices = {}
    for name, price in lists[0].prices.items():
        taken = [listed.prices[name] for listed in lists]
        sigma_ms = math.hypot(*(each.sigma_ms for each in taken)) / len(taken)
        prices[name] = replace(price, ms=fmean(each.ms for each in taken), sigma_ms=sigma_ms)
    return replace(lists[0], prices=prices)


def _measuring(cost_model: CostModel) -> MeasuredCost:
    if not isinstance(cost_model, MeasuredCost):
        raise InputError(f"the cost model {cost_model.name} does not measure: nothing can be judged by its prices")
    return cost_model


def _search(finding: Finding) -> Row:
    result, effort = finding.result, finding.result.effort
    return {
        "wall_time_s": round(finding.wall_time_s, _DECIMALS),
        "promised_percent": round(result.improvement_percent, _DECIMALS),
        "steps": len(result.trajectory.steps),
        "rewrites": effort.rewrites,
        "prices_asked": effort.prices_asked,
        "prices_measured": effort.prices_measured,
    }


def priced(cost_model: MeasuredCost, original: Graph, best: Mapping[str, Graph], sigmas: float) -> Row:
    """Return what the graphs save by a list of measured prices, as shares of what the measured search's graph saves.

    There are no shares where that saves nothing beyond its noise. The noise of a share is that of what lies between
    both graphs: what they have in common is equally wrong.
    """
    cost_model.measure([original, *best.values()])
    original_ms = cost_model.runtime_ms(original)
    saved_ms = {cost: original_ms - cost_model.runtime_ms(graph) for cost, graph in best.items()}
    noise_ms = {cost: cost_model.change(original, graph).sigma_ms for cost, graph in best.items()}
    apart_ms = {cost: cost_model.change(best[MEASURED], graph).sigma_ms for cost, graph in best.items()}
    is_vacuous = saved_ms[MEASURED] <= sigmas * noise_ms[MEASURED]

    def share(ms: float) -> float | None:
        return None if is_vacuous else round(ms / saved_ms[MEASURED], _DECIMALS)

    return {
        "original_ms": original_ms,
        "vacuous": is_vacuous,
        "saved_percent": {cost: _percent(ms, original_ms) for cost, ms in saved_ms.items()},
        "noise_percent": {cost: _percent(ms, original_ms) for cost, ms in noise_ms.items()},
        "dearer": {cost: -ms > sigmas * noise_ms[cost] for cost, ms in saved_ms.items()},
        "share_of_measured": {cost: share(ms) for cost, ms in saved_ms.items()},
        "share_noise": {cost: share(ms) for cost, ms in apart_ms.items()},
    }


def _percent(part_ms: float, original_ms: float) -> float:
    return round(100.0 * part_ms / original_ms, _DECIMALS) if original_ms else 0.0


def summary(rows: Mapping[Key, Row], aims: Aims) -> dict[str, Any]:
    """Return the document of schema `price_search`: every row, and by method what its searches find and take."""
    by_method = nested({(method, graph): row for (graph, method), row in rows.items()})
    return {
        "aims": asdict(aims),
        "graphs": nested(rows),
        "methods": {
            method: {cost: _of_cost(cost, own.values(), aims) for cost in (PREDICTED, ANALYTIC)}
            for method, own in by_method.items()
        },
    }


def _of_cost(cost: str, rows: Collection[Row], aims: Aims) -> dict[str, Any]:
    """Return what one kind of price is worth to a method, over all graphs."""
    ratios = [time_ratio(row, cost) for row in rows]
    return {
        **{prices: _worth([row[prices] for row in rows], cost, aims) for prices in (FROZEN, ANEW)},
        "time_ratio": {
            "median": median(ratios),
            "largest": max(ratios),
            "within": sum(ratio <= aims.time for ratio in ratios),
            "cases": len(ratios),
        },
    }


def _worth(told: list[Row], cost: str, aims: Aims) -> dict[str, Any]:
    """Return the middle share, the smallest and the number that reach the aim, of the cases that are not vacuous.

    Of all cases, the number in which the search was led astray: what it found is dearer than the original.
    """
    shares = [row["share_of_measured"][cost] for row in told if not row["vacuous"]]
    return {
        "median": median(shares) if shares else None,
        "smallest": min(shares, default=None),
        "reached": sum(share >= aims.share for share in shares),
        "cases": len(shares),
        "dearer": sum(row["dearer"][cost] for row in told),
    }


def time_ratio(row: Row, cost: str) -> float:
    """Return the time of a search as a part of that of the measured one."""
    searches = row["searches"]
    return round(searches[cost]["wall_time_s"] / searches[MEASURED]["wall_time_s"], _DECIMALS)
