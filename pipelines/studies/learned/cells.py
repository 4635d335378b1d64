"""The worth of learning to a search: every method's curve of what it has saved, told as means over seeds.

    rows = call_isolated(limits, run_cells, {"rlflow": cell, "iterated": other})      by method, in one process
    Rows({("gpt2", "rlflow", 0): row, ...}, seeded=frozenset({"rlflow"})).figures("gpt2", "rlflow", (500, 2000))

All curves of a graph begin where greedy search has ended. If greedy search carries out 115 rewrites, then what any
method has saved at 500 evaluations is what it had after 615, those that are greedy search's own included.

The best known is the best that any method has found on a graph, in whatever time; the gap is from greedy search to it.
A method that reaches 9.0 % where greedy search ends at 7.0 and 9.5 is known has closed 0.8 of the gap. A graph whose
gap is at most `VACUOUS_POINTS` says nothing of that and does not count.

The invariant: whatever is published follows from the rows alone.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from scipy.special import stdtrit

from rlflow.agents.match_level.baselines import chains_random, rule_mean, untrained
from rlflow.agents.match_level.planned import planned
from rlflow.agents.trained_policy import trained_policy
from rlflow.cost.models import COST_MODELS
from rlflow.method import OptimisationResult
from rlflow.optimise.methods import METHODS
from rlflow.search.best import best
from studies.learned.shared_prices import shared_prices
from studies.program import OptionOf
from studies.search_task import SearchTask, carried_out

if TYPE_CHECKING:
    from rlflow.optimise.methods import MethodFactory

MEASURED = "measured"
"""The kind of cost whose prices the searches of the study share."""
GREEDY, LEARNED, DEPTH_TRANSFER, PLANNED = "greedy", "rlflow", "depth_transfer", "planned"
WITHOUT_CONTROLLER, PORTFOLIO_LONG = "without_controller", "portfolio_long"
TRAINED = (LEARNED, DEPTH_TRANSFER, PLANNED, WITHOUT_CONTROLLER)
"""The methods that have cost what it took to train their policy."""
TAUGHT = (*TRAINED, "rule_mean", "untrained")
"""The methods that need the folder of a policy."""
VACUOUS_POINTS = 0.1
"""Percentage points: a gap that is no larger than this cannot tell methods apart."""
_DECIMALS = 4
_CONFIDENCE = 0.95

BASELINES: Mapping[str, MethodFactory] = {
    DEPTH_TRANSFER: trained_policy,
    PLANNED: planned,
    WITHOUT_CONTROLLER: partial(trained_policy, playing=0.0),
    PORTFOLIO_LONG: best,
    "chains_random": chains_random,
    "rule_mean": rule_mean,
    "untrained": untrained,
}
"""The methods of this study alone. The first is the learned one by a policy that has had lessons of the family, but of
few layers; the second plans in M, the third goes by V alone. The fourth is the portfolio with more rewrites
than others have, for the best known.
"""
USUAL = {PORTFOLIO_LONG: "best"}
"""The methods of `BASELINES` that have the options of one in conf/search."""

Row = dict[str, Any]
Key = tuple[str, str, int]
"""Graph, method and seed."""


@dataclass(frozen=True)
class Case:
    """A graph of conf/graph at a cost of conf/cost, without lessons of its family, as zoo entries are called.

    taught_at: the prices of the other families' lessons, a kind of cost model. deep: a policy may have lessons of its
    family, of few layers.
    """

    graph: str
    cost: str
    family: str
    taught_at: str
    deep: bool = False


@dataclass(frozen=True)
class Cell(SearchTask):
    """One search. training_s, training_rewrites: what the method had cost before it saw this graph."""

    training_s: float = 0.0
    training_rewrites: int = 0


def case_of(settings: Any, option_of: OptionOf, name: str) -> Case:
    """A case of the settings by its name; its lessons are at its own prices unless it says otherwise."""
    case = settings["cases"][name]
    return Case(**{"taught_at": case["cost"]} | case, family=option_of("graph", case["graph"])["entry"])


def run_cells(cells: Mapping[str, Cell]) -> dict[str, Row]:
    """Search with all rules of the library, by one method after another."""
    return {method: run_cell(cell) for method, cell in cells.items()}


def run_cell(cell: Cell) -> Row:
    """Search once."""
    finding = carried_out(
        cell,
        lambda name: BASELINES[name] if name in BASELINES else METHODS.get(name),
        lambda name: shared_prices if name == MEASURED else COST_MODELS.get(name),
    )
    training = {"training_s": cell.training_s, "training_evaluations": cell.training_rewrites}
    return row_of(finding.result, finding.wall_time_s) | training


def row_of(result: OptimisationResult, search_s: float) -> Row:
    """The figures of a search; each milestone has its evaluations, prices measured, seconds and percent saved."""
    start_ms = result.start_ms
    return {
        "improvement_percent": result.improvement_percent,
        "evaluations": result.effort.rewrites,
        "prices_measured": result.effort.prices_measured,
        "measuring_s": result.effort.measuring_s,
        "search_s": search_s,
        "milestones": [
            [
                reached.rewrites,
                reached.prices_measured,
                reached.wall_time_s,
                100.0 * (start_ms - reached.runtime_ms) / start_ms if start_ms else 0.0,
            ]
            for reached in result.milestones
        ],
    }


def saved_percent(row: Row, rewrites: int) -> float:
    """Return what a search had saved after so many evaluations; nothing before the first milestone."""
    return _saved_percent(row, [reached[0] for reached in row["milestones"]], rewrites)


def saved_percent_by_prices(row: Row, prices: int) -> float:
    """Return what a search had saved when it had measured so many prices; nothing before the first milestone."""
    return _saved_percent(row, [reached[1] for reached in row["milestones"]], prices)


def _saved_percent(row: Row, efforts: Sequence[int], effort: int) -> float:
    after = bisect_right(efforts, effort)
    return float(row["milestones"][after - 1][3]) if after else 0.0


def mean_ci95(values: Sequence[float]) -> tuple[float, list[float] | None]:
    """The mean and its 95 % interval by Student's distribution; None of a single value, which has none."""
    mean = fmean(values)
    if len(values) < 2:
        return mean, None
    arm = float(stdtrit(len(values) - 1, (1 + _CONFIDENCE) / 2)) * stdev(values) / math.sqrt(len(values))
    return mean, [mean - arm, mean + arm]


def mean_figures(name: str, values: Sequence[float], is_drawn: bool = True) -> Row:
    """The mean under its name, and its interval; what does not draw is as good as known exactly."""
    mean, interval = mean_ci95(values)
    interval = interval if is_drawn else [mean, mean]
    return {name: round(mean, _DECIMALS), f"{name}_ci95": interval and [round(end, _DECIMALS) for end in interval]}


@dataclass(frozen=True)
class Rows:
    """The rows of a study: `seeded` names the methods that draw, of which one row is one seed of several."""

    rows: Mapping[Key, Row]
    seeded: frozenset[str]

    @property
    def graphs(self) -> list[str]:
        """The graphs of which greedy search's row is there, with which every curve begins."""
        return list(dict.fromkeys(graph for graph, method, _ in self.rows if method == GREEDY))

    def methods(self, graph: str) -> list[str]:
        """The methods that have a row on this graph."""
        return list(dict.fromkeys(method for of, method, _ in self.rows if of == graph))

    def of(self, graph: str, method: str) -> dict[int, Row]:
        """The rows of a method by their seeds."""
        return {seed: row for (of, by, seed), row in self.rows.items() if (of, by) == (graph, method)}

    def greedy(self, graph: str) -> Row:
        """The row of greedy search."""
        return next(iter(self.of(graph, GREEDY).values()))

    def at(self, graph: str, row: Row, rewrites: int) -> float:
        """Return what a row had saved after so many evaluations past greedy search's."""
        return saved_percent(row, self.greedy(graph)["evaluations"] + rewrites)

    def best_known(self, graph: str) -> tuple[float, str]:
        """The most that any row of a graph has saved, and the first method of such a row."""
        found = [(row["improvement_percent"], by) for (of, by, _), row in self.rows.items() if of == graph]
        most = max(percent for percent, _ in found)
        return most, next(by for percent, by in found if percent >= most - 1e-6)

    def gap_closed(self, graph: str, percent: float) -> float | None:
        """The share of the gap that such a saving closes; None on a graph that hardly has one."""
        least, most = self.greedy(graph)["improvement_percent"], self.best_known(graph)[0]
        return (percent - least) / (most - least) if most - least > VACUOUS_POINTS else None

    def figures(self, graph: str, method: str, readings: Sequence[int]) -> Row:
        """Return what is published of a method on a graph; `readings`: the evaluations at which its curve is read."""
        rows, figures_of = self.of(graph, method), partial(mean_figures, is_drawn=method in self.seeded)
        row: Row = {}
        for rewrites in readings:
            name = f"improvement_percent_{rewrites}"
            row |= figures_of(name, [self.at(graph, one, rewrites) for one in rows.values()])
            shares = [self.gap_closed(graph, self.at(graph, one, rewrites)) for one in rows.values()]
            known = [share for share in shares if share is not None]
            row[f"gap_closed_{rewrites}"] = round(fmean(known), _DECIMALS) if known else None
        row |= figures_of("improvement_percent", [one["improvement_percent"] for one in rows.values()])
        means = ("evaluations", "prices_measured", "search_s", "training_s", "training_evaluations")
        return (
            row
            | {"seeds": sorted(rows)}
            | {name: round(fmean(one[name] for one in rows.values()), _DECIMALS) for name in means}
        )
