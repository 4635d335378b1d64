"""Find how much each method saves on each graph, at each cost, and for what effort.

    python pipelines/study.py headroom                                             conf/study/headroom.yaml as it is
    python pipelines/study.py headroom 'graphs.analytic=[bert]' 'graphs.gpu=[]' 'methods=[greedy]'         a part of it

The rows go to data/results/headroom/metrics.json, in place of older ones of the same graph, cost and method. A search
that has ended is kept until all have, so that a study which was killed goes on where it was.
"""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiment import figures
from experiment.results import read_results
from experiment.tables import headroom_table
from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_context_of, cost_model_of, save_prices
from tracking.run import Run, numbers

from rlflow.cost import price_list
from rlflow.cost.base import CostContext
from rlflow.errors import PriceError
from rlflow.method import Budget
from rlflow.show.picture_file import save
from studies.headroom.cells import Cell, Key, Row, rows, with_rows
from studies.headroom.documents import Headroom
from studies.program import OptionOf, graph_files, open_study, options_of, study_program
from studies.published import publish_part
from studies.subject import Subject

RESULTS = Path("data/results/headroom")
PRICES = "prices.json"
MEASURED = "measured"

log = logging.getLogger(__name__)


@study_program("headroom")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    with open_study("headroom", settings) as study:
        cells = _cells(settings, options_of("headroom"), study.folder)
        _publish(study.gathered(cells, _rows(cells, settings["processes"], study.folder), _logged))
        if (kept := study.folder / PRICES).exists():
            price_list.read(kept).save(Path(settings["prices"]))
        study.run.artifact(RESULTS)


def _cells(settings: Any, option_of: OptionOf, folder: Path) -> dict[Key, Cell]:
    """The searches of the study, those of one cost after those of another."""
    searches = {name: option_of("search", name) for name in settings["methods"]}
    costs = _costs(settings, option_of, folder)
    graphs = [graph for cost in costs for graph in settings["graphs"][cost]]
    sections = {graph: option_of("graph", graph) for graph in dict.fromkeys(graphs)}
    models = graph_files(sections, folder, settings["processes"])
    return {
        (graph, cost, method): Cell(
            subject=Subject(models[graph], kind, context),
            method=search["method"],
            options=search["options"],
            budget=_budget(graph, method, search, settings),
            rewrites=tuple(settings["rewrites"]),
            draws=settings["draws"],
            seed=settings["seed"],
        )
        for cost, (kind, context) in costs.items()
        for graph in settings["graphs"][cost]
        for method, search in searches.items()
    }


def _costs(settings: Any, option_of: OptionOf, folder: Path) -> dict[str, tuple[str, CostContext]]:
    """The costs, by their options' names, that have graphs and can be had here."""
    costs = {}
    for cost in [cost for cost, graphs in settings["graphs"].items() if graphs]:
        section = option_of("cost", cost)
        prices = None
        if section["kind"] == MEASURED:
            section = section | {"prices": settings["prices"]}
            prices = _price_list(section, folder / PRICES)
            if prices is None:
                continue
        costs[cost] = cost_context_of(section, prices)
    return costs


def _budget(graph: str, method: str, search: Any, settings: Any) -> Budget:
    """The graph's time, and the search's own expansions where the study does not set them."""
    time_s = settings["time_s"].get(graph, settings["time_s"]["default"])
    return Budget(time_s, settings["expansions"].get(method, search["expansions"]))


def _price_list(cost: Any, kept: Path) -> Path | None:
    """A copy of the published prices, to which what is missing is added on their machine; None if there are none."""
    if not kept.exists():
        try:
            save_prices(cost_model_of(cost), kept)
        except PriceError as error:
            log.warning("no measured costs: %s", error)
            return None
    return kept


def _rows(cells: dict[Key, Cell], processes: int, folder: Path) -> Iterator[tuple[Key, Row]]:
    """The rows as they come. Cells that measure run one at a time, since another would disturb the prices."""
    for measures in (False, True):
        part = {key: cell for key, cell in cells.items() if (cell.subject.cost_model == MEASURED) == measures}
        yield from rows(part, processes=1 if measures else processes, folder=folder)


def _logged(run: Run, key: Key, row: Row) -> str:
    """Log a row, and tell it in a few words."""
    run.log(0, numbers({"/".join(key): row}))
    return f"{row['improvement_percent']:.2f} %"


def _publish(found: dict[Key, Row]) -> None:
    """Write metrics, table and picture."""
    path = RESULTS / "metrics.json"
    document = with_rows(read_results(path) if path.exists() else {}, found)
    publish_part(path, Headroom, document, __file__)
    (RESULTS / "table.md").write_text(headroom_table(document))
    save(figures.improvement(document), RESULTS / "improvement.png")
