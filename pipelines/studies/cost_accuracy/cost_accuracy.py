"""Compare the sum of a graph's measured regions with what the model takes end to end, for every model of the zoo.

    python pipelines/study.py cost_accuracy

Prices are measured anew, and are published as a list that `cost=measured` may price by on any machine (`cost.prices`).
Each model is timed in ONNX Runtime against itself, which is the control. The machine should be quiet. Prices and graphs
that are done are kept until all are.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from experiment.results import write_results
from experiment.tables import cost_accuracy_table
from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_model_of, model_file_of, save_prices
from tracking.run import Run, numbers

from rlflow.cost import price_list
from rlflow.cost.region_cost import RegionCost
from rlflow.onnx_io import from_onnx
from rlflow.runtime.timing.latency import compare_latency
from rlflow.runtime.timing.statistics import ratio
from studies.cost_accuracy.documents import CostAccuracy
from studies.program import open_study, options_of, study_program

RESULTS = Path("data/results/cost_accuracy/metrics.json")
PRICES = Path("data/prices/zoo.json.gz")

Row = dict[str, Any]


@study_program("cost_accuracy")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    option_of = options_of("cost_accuracy")
    cost, graphs = option_of("cost", settings["cost"]), settings["graphs"]
    with open_study("cost_accuracy", settings) as study:
        compared = partial(_compared, cost, settings, study.folder)
        if rows := study.rows({(name,): option_of("graph", name) for name in graphs}, compared, _logged):
            results = {name: row for (name,), row in rows.items()}
            write_results(RESULTS, CostAccuracy, results)
            RESULTS.with_name("table.md").write_text(cost_accuracy_table(results))
            price_list.read(study.folder / "prices.json").save(PRICES)
            study.run.artifact(RESULTS)


def _logged(run: Run, key: tuple[str], row: Row) -> str:
    """Log a row, and tell it in a few words."""
    (graph,) = key
    run.log(0, numbers({graph: row}))
    return f"{row['difference_percent']:+.1f} %"


def _compared(cost: Any, settings: Any, folder: Path, graph: Any) -> Row:
    """Price a graph, then time it against itself."""
    prices, model = folder / "prices.json", model_file_of(graph, folder / "model.onnx")
    cost_model = cost_model_of(cost, prices if prices.exists() else None)
    assert isinstance(cost_model, RegionCost)
    imported = from_onnx(model)
    cost_model_ms = cost_model.runtime_ms(imported)
    save_prices(cost_model, prices)
    parts = cost_model.breakdown(imported)

    before = os.getloadavg()[0]
    times_ms = compare_latency(
        {"model": model, "again": model}, setting=cost_model.setting, seed=settings["seed"], **settings["latency"]
    )
    end_to_end_ms = float(np.median(np.concatenate(list(times_ms.values()))))
    control = ratio(times_ms["model"], times_ms["again"])
    return {
        "cost_model_ms": cost_model_ms,
        "end_to_end_ms": end_to_end_ms,
        "difference_percent": _percent(cost_model_ms, end_to_end_ms),
        "alone_difference_percent": _percent(parts.regions_ms + parts.own_reorders_ms, end_to_end_ms),
        "control": control.value,
        "control_ci95": control.ci95,
        "regions_ms": parts.regions_ms,
        "reorders_ms": parts.reorders_ms,
        "own_reorders_ms": parts.own_reorders_ms,
        "rounds": settings["latency"]["rounds"],
        "runs_per_round": settings["latency"]["runs_per_round"],
        "load": [before, os.getloadavg()[0]],
    }


def _percent(cost_model_ms: float, end_to_end_ms: float) -> float:
    return 100 * (cost_model_ms / end_to_end_ms - 1)
