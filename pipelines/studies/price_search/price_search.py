"""Find what searches find by predicted prices, told in measured ones, and in which part of the time.

    python pipelines/study.py price_search   conf/study/price_search.yaml as it is
    python pipelines/study.py price_search 'graphs=[squeezenet1_1]' 'methods=[greedy]'       a part of it

The figures go to data/results/price_search/metrics.json. The machine should be quiet: prices and times are taken. A
graph that is done is kept until all are, so that a study which was killed goes on where it was.
"""

from pathlib import Path
from typing import Any

from experiment.tables import price_search_table
from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_context_of
from tracking.run import Run, numbers

from rlflow.method import Budget
from studies.price_search.cases import FROZEN, PREDICTED, Aims, Case, Key, Row, run_case, summary, time_ratio
from studies.price_search.documents import PriceSearch
from studies.program import graph_files, open_study, options_of, study_program
from studies.published import publish
from studies.search_task import SearchTask
from studies.subject import Subject

RESULTS = Path("data/results/price_search")


@study_program("price_search")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    with open_study("price_search", settings) as study:
        if rows := study.rows(_cases(settings, study.folder), run_case, _logged):
            document = summary(rows, Aims(**settings["aims"]))
            publish(RESULTS / "metrics.json", PriceSearch, document, __file__)
            (RESULTS / "table.md").write_text(price_search_table(document))
            study.run.artifact(RESULTS)


def _cases(settings: Any, folder: Path) -> dict[Key, Case]:
    """The searches of the study, by graph and method."""
    option_of = options_of("price_search")
    graphs = graph_files({graph: option_of("graph", graph) for graph in settings["graphs"]}, folder, processes=1)
    costs = {name: cost_context_of(option_of("cost", cost)) for name, cost in settings["costs"].items()}
    cases = {}
    for method in settings["methods"]:
        search = option_of("search", method)
        budget = Budget(expansions=settings["expansions"].get(method, search["expansions"]))
        for graph, model in graphs.items():
            tasks = {
                name: SearchTask(Subject(model, kind, context), search["method"], search["options"], budget)
                for name, (kind, context) in costs.items()
            }
            cases[graph, method] = Case(tasks, settings["sigmas"], settings["lists"])
    return cases


def _logged(run: Run, key: Key, row: Row) -> str:
    """Log a row, and tell it in a few words."""
    run.log(0, numbers({"/".join(key): row}))
    share = row[FROZEN]["share_of_measured"][PREDICTED]
    found = "nothing to find" if share is None else f"a share of {share:.3f}"
    return f"{found} in {time_ratio(row, PREDICTED):.3f} of the time"
