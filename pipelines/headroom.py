"""Find how much each method saves on each graph, at each cost, and for what effort.

    python pipelines/headroom.py                                             conf/headroom.yaml as it is
    python pipelines/headroom.py 'graphs.analytic=[bert]' 'graphs.gpu=[]' 'methods=[greedy]'         a part of it

The rows go to data/results/headroom/metrics.json, in place of older ones of the same graph, cost and method. A search
that has ended is kept until all have, so that a study which was killed goes on where it was.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

import hydra
from hydra import compose
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from rlflow.atomic_file import written_whole
from rlflow.cli.progress import progress_bar
from rlflow.errors import PriceError, RLFlowError
from rlflow.evaluation import figures, tables
from rlflow.evaluation.headroom import Cell, Key, Row, run_cell, with_rows
from rlflow.evaluation.results import read_results, write_results
from rlflow.optimiser import Budget
from rlflow.runtime.isolation import Limits, call_isolated
from rlflow.tracking.factories import cost_factory_of, model_file_of
from rlflow.tracking.provenance import source_tags
from rlflow.tracking.run import numbers, open_run
from rlflow.tracking.store import main_root, open_store

RESULTS = Path("data/results/headroom")
GRACE_S = 600.0  # beyond the time of a search: reading and comparing models, and steps that cannot be cut short

log = logging.getLogger(__name__)


@hydra.main(version_base="1.3", config_path="../conf", config_name="headroom")
def headroom(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    overrides = HydraConfig.get().overrides.task
    folder = main_root() / ".checkpoints" / "headroom"
    tags = {"stage": "headroom", **source_tags(Path.cwd(), overrides)}
    with open_run(open_store(), "headroom", parameters=settings, tags=tags) as run, progress_bar("headroom") as on_progress:
        cells = _cells(settings, overrides, folder, on_progress)
        rows: dict[Key, Row] = {}
        for key, row in _rows(cells, settings["processes"], folder):
            rows[key] = row
            run.log(0, numbers({"/".join(key): row}))
            on_progress(len(rows) / len(cells), f"{' '.join(key)}: {row['improvement_percent']:.2f} %")

        _publish({key: rows[key] for key in cells if key in rows})
        run.artifact(RESULTS)
        if missing := [" ".join(key) for key in cells if key not in rows]:
            raise RLFlowError(f"without a result, to be tried again by the next run: {', '.join(missing)}")
    shutil.rmtree(folder)


def _cells(settings: Any, overrides: list[str], folder: Path, on_progress: OnProgress) -> dict[Key, Cell]:
    """The searches of the study, those of one cost after those of another; graphs are written to files."""
    option = partial(_option, overrides)
    searches = {name: option("search", name) for name in settings["methods"]}
    costs = {name: option("cost", name) for name, graphs in settings["graphs"].items() if graphs}
    models: dict[str, Path] = {}
    cells = {}
    for cost, section in costs.items():
        prices = _prices(section, settings, folder)
        if section["kind"] == "measured" and prices is None:
            continue
        for graph in settings["graphs"][cost]:
            models[graph] = models.get(graph) or _model(option("graph", graph), folder)
            for method, search in searches.items():
                cells[graph, cost, method] = Cell(
                    model=models[graph],
                    method=search["method"],
                    options=search["options"],
                    budget=_budget(graph, method, search, settings),
                    cost_model=cost_factory_of(section, prices),
                    prices=prices,
                    evaluations=tuple(settings["evaluations"]),
                    draws=settings["draws"],
                    seed=settings["seed"],
                )
    return cells
