"""Try the policy on whole models: what its search finds with C and without it, beside greedy search and the portfolio.

Writes data/results/policy/trial.json. Counts end the searches, so that the figures are the same on every machine. The
models are deeper than those of the lessons and of the practice, and of the same families.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_context_of
from tracking.run import Run, numbers

from rlflow.agents.match_level.guide import ENCODER, description
from rlflow.method import Budget
from studies.figures import nested
from studies.policy.documents import At, Trial, Tried
from studies.program import graph_files, open_study, options_of, study_program
from studies.published import publish
from studies.search_task import SearchTask, carried_out
from studies.subject import Subject

POLICY = Path("data/policy/whole")
RESULTS = Path("data/results/policy/trial.json")
GREEDY, PORTFOLIO, RLFLOW, WITHOUT = "greedy", "portfolio", "rlflow", "without_controller"
Key = tuple[str, str, str, str]
"""Prices, graph, method, and the rewrites of one of the policy's searches."""


@study_program("policy")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    running = {name: settings["trial"][name] for name in ("longest_s", "processes")}
    tried = {"policy": description(POLICY, ENCODER), **{name: settings[name] for name in ("seed", "trial")}}
    with open_study("policy_trial", settings | running, tried) as study:
        if rows := study.rows(_cells(settings, study.folder), saved_percent, _logged):
            publish(RESULTS, Trial, summary(rows), __file__)
            study.run.artifact(RESULTS)


def saved_percent(task: SearchTask) -> float:
    """Search, and return what that saves of the original's price."""
    return carried_out(task).result.improvement_percent


def _cells(settings: Any, folder: Path) -> dict[Key, SearchTask]:
    option_of, trial = options_of("policy"), settings["trial"]
    graphs = graph_files({graph: option_of("graph", graph) for graph in trial["graphs"]}, folder, processes=1)
    portfolio = trial["portfolio"]
    cells: dict[Key, SearchTask] = {}
    for cost in trial["costs"]:
        kind, context = cost_context_of(option_of("cost", cost))
        for graph, model in graphs.items():
            subject = Subject(model, kind, context)
            cells[cost, graph, GREEDY, ""] = SearchTask(subject, "greedy", {}, Budget())
            budget = Budget(expansions=portfolio["expansions"])
            cells[cost, graph, PORTFOLIO, ""] = SearchTask(subject, portfolio["method"], portfolio["options"], budget)
            for rewrites in trial["rewrites"]:
                options = {"folder": str(POLICY), "seed": settings["seed"], "rewrites": rewrites}
                for method, own in ((RLFLOW, {}), (WITHOUT, {"playing": 0.0})):
                    cells[cost, graph, method, str(rewrites)] = SearchTask(subject, "rlflow", options | own, Budget())
    return cells


def summary(rows: Mapping[Key, float]) -> Trial:
    """The rows by prices and graph; a graph on which a search is missing is left out."""
    by_method: dict[str, dict[str, dict[str, dict[str, float]]]] = nested(rows)
    return {
        cost: {
            graph: Tried(
                greedy_percent=found[GREEDY][""],
                portfolio_percent=found[PORTFOLIO][""],
                searches=[
                    At(
                        rewrites=int(rewrites),
                        rlflow_percent=saved,
                        without_controller_percent=found[WITHOUT][rewrites],
                    )
                    for rewrites, saved in found[RLFLOW].items()
                ],
            )
            for graph, found in graphs.items()
            if found.keys() == {GREEDY, PORTFOLIO, RLFLOW, WITHOUT} and found[RLFLOW].keys() == found[WITHOUT].keys()
        }
        for cost, graphs in by_method.items()
    }


def _logged(run: Run, key: Key, saved: float) -> str:
    """Log a row, and tell it in a few words."""
    *names, rewrites = key
    run.log(int(rewrites or 0), numbers({"/".join(names): saved}))
    return f"saves {saved:.2f} %"
