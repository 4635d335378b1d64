"""Compare the price of a graph with what the model takes end to end, for every model of the zoo and for others.

    python pipelines/study.py cost_accuracy
    python pipelines/study.py cost_accuracy exports=FOLDER          models that prices were not learned from, besides

Each model is timed in ONNX Runtime against itself, which is the control. The machine should be quiet. Graphs that are
done are kept until all are.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from experiment.tables import cost_accuracy_table
from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_model_of, model_file_of
from tracking.run import Run, numbers

from rlflow.cost.region_cost import RegionCost
from rlflow.onnx_io import from_onnx
from rlflow.runtime.timing.latency import compare_latency
from rlflow.runtime.timing.statistics import ratio
from studies.cost_accuracy.documents import CostAccuracy
from studies.program import exported, open_study, options_of, study_program
from studies.published import publish

RESULTS = Path("data/results/cost_accuracy/metrics.json")

Row = dict[str, Any]


@study_program("cost_accuracy")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    option_of = options_of("cost_accuracy")
    cost = {**option_of("cost", settings["cost"]), **settings["machine"]}
    cells = {(name,): option_of("graph", name) for name in settings["graphs"]}
    cells |= {(name,): section for name, section in exported(settings["exports"]).items()}
    with open_study("cost_accuracy", settings) as study:
        if rows := study.rows(cells, partial(_compared, cost, settings, study.folder), _logged):
            results = {name: row for (name,), row in rows.items()}
            publish(RESULTS, CostAccuracy, results, __file__)
            RESULTS.with_name("table.md").write_text(cost_accuracy_table(results))
            study.run.artifact(RESULTS)


def _logged(run: Run, key: tuple[str], row: Row) -> str:
    """Log a row, and tell it in a few words."""
    (graph,) = key
    run.log(0, numbers({graph: row}))
    return f"{row['difference_percent']:+.1f} %"


def _compared(cost: Any, settings: Any, folder: Path, graph: Any) -> Row:
    """Price a graph, then time it against itself."""
    model = model_file_of(graph, folder / "model.onnx")
    cost_model = cost_model_of(cost)
    assert isinstance(cost_model, RegionCost)
    imported = from_onnx(model)
    cost_model_ms = cost_model.runtime_ms(imported)
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
