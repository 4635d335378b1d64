"""Enter the methods of this project in the leaderboard, and write its page: `make leaderboard`.

    python pipelines/study.py leaderboard                                          conf/study/leaderboard.yaml as it is
    python pipelines/study.py leaderboard 'graphs=[bert]' 'methods=[greedy]'       a part of it
    python pipelines/study.py leaderboard.write_page                               the page alone

Each method has the same number of rewrites. Its entry is verified by replaying it, as anybody's is, and has the course
of its best so far, against rewrites and against seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf
from tracking.run import Run

from rlflow.cost.base import CostContext
from rlflow.cost.models import COST_MODELS
from rlflow.leaderboard import Entry, Point, submit
from rlflow.method import Budget
from rlflow.optimise.methods import METHODS
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.hardware import processor_name
from rlflow.zoo.named import graph_of
from studies.leaderboard import write_page
from studies.program import open_study, options_of, study_program

Key = tuple[str, str, str]
"""Model, cost model and method."""


@dataclass(frozen=True)
class Cell:
    """A method with its options on a row, and the rewrites that it may carry out."""

    model: str
    cost: str
    name: str
    method: str
    options: dict[str, Any]
    rewrites: int


@study_program("leaderboard")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    option_of = options_of("leaderboard")
    with open_study("leaderboard", settings) as study:
        searches = {name: option_of("search", name) for name in settings["methods"]}
        cells = {
            (model, cost, name): Cell(model, cost, name, one["method"], one["options"], settings["rewrites"])
            for model in settings["graphs"]
            for cost in settings["costs"]
            for name, one in searches.items()
        }
        for entry in map(Entry.from_json, study.rows(cells, entered, _logged).values()):
            submit(entry, write_page.BOARD)
        write_page.main()


def entered(cell: Cell) -> str:
    """Search, and return the entry as JSON."""
    rules, prices = library.load(), COST_MODELS.get(cell.cost)(CostContext())
    method = METHODS.get(cell.method)(rules, Rewriter(rules.rules), prices, **cell.options)
    result = method.optimise(graph_of(cell.model), Budget(rewrites=cell.rewrites))
    # A graph that is cheaper by less than prices are sure of is a milestone, and not what the search returns.
    reached = [one for one in result.milestones if one.runtime_ms >= result.best_ms]
    course = tuple(
        Point(one.rewrites, one.wall_time_s, 100.0 * (result.start_ms - one.runtime_ms) / result.start_ms)
        for one in reached
    )
    return Entry(
        model=cell.model,
        cost=cell.cost,
        method=cell.name,
        trajectory=result.trajectory,
        rewrites=result.effort.rewrites,
        seconds=result.wall_time_s,
        processor=processor_name(),
        course=course,
    ).to_json()


def _logged(run: Run, key: Key, entry: str) -> str:
    course = Entry.from_json(entry).course
    saved = course[-1].saved_percent if course else 0.0
    run.log(0, {"/".join(key): saved})
    return f"{saved:.2f} %"
