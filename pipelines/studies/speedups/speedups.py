"""Find how much faster the models of `rlflow optimise` run over ORT_ENABLE_ALL, beside those of public tools.

    python pipelines/study.py speedups                                            conf/study/speedups.yaml as it is
    python pipelines/study.py speedups 'models=[{graph: bert, target: 1.07}]'     a part of it

Beside the tools stands ONNX Runtime with its own optimisation off (`ort_disable_all`), which is faster on some models.
The figures go to data/results/speedups/metrics.json. A model that is done is kept until all are, so that a study which
was killed goes on where it was. The machine should be quiet: everything here is timed.
"""

import os
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from experiment.tables import speedups_table
from omegaconf import DictConfig, OmegaConf
from tracking.factories import model_file_of
from tracking.run import Run, numbers

from rlflow.optimise.gate import GateConfig
from rlflow.runtime.scratch import scratch_folder
from studies.budgets.runs import optimise_by_command
from studies.program import open_study, options_of, study_program
from studies.published import publish
from studies.speedups.documents import Speedups
from studies.speedups.public_tools import Made, run_tool
from studies.speedups.ratios import Rival, best_tool, is_met, of_report, of_timing, of_tool, summary, time_rivals

RESULTS = Path("data/results/speedups/metrics.json")
RLFLOW, UNOPTIMISED = "rlflow", "ort_disable_all"

Row = dict[str, Any]


@study_program("speedups")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    option_of = options_of("speedups")
    cells = {
        (model["graph"],): Cell(option_of("graph", model["graph"]), model["target"]) for model in settings["models"]
    }
    with open_study("speedups", settings) as study:
        if found := study.rows(cells, partial(_timed, settings), _logged):
            rows = {name: row for (name,), row in found.items()}
            publish(RESULTS, Speedups, summary(rows, settings["budget_s"]), __file__)
            RESULTS.with_name("table.md").write_text(speedups_table(rows))
            study.run.artifact(RESULTS)


class Cell(NamedTuple):
    """A model to be made faster, as its section of conf/graph, and the ratio that is aimed at."""

    graph: Any
    target: float


def _logged(run: Run, key: tuple[str], row: Row) -> str:
    """Log a row, and tell it in a few words."""
    (graph,) = key
    run.log(0, numbers({graph: row}))
    return f"{row['ratio']:.3f} times as fast"


def _timed(settings: Any, cell: Cell) -> Row:
    """Everything about one model."""
    with scratch_folder() as folder:
        return _row(cell, settings, folder)


def _row(cell: Cell, settings: Any, folder: Path) -> Row:
    """The folder is for the model's file and those that are made of it."""
    gate = GateConfig(**settings["gate"], seed=settings["seed"])
    original, ours = model_file_of(cell.graph, folder / "original.onnx"), folder / f"{RLFLOW}.onnx"
    before = os.getloadavg()[0]
    report, wall_time_s = optimise_by_command(original, ours, settings["budget_s"])

    rivals = {RLFLOW: Rival(ours), UNOPTIMISED: Rival(original, "as_written")}
    made = {UNOPTIMISED: Made(version("onnxruntime"), wall_time_s=0.0)}
    for tool in settings["tools"]:
        made[tool] = run_tool(tool, original, folder / f"{tool}.onnx", draws=gate.draws, seed=gate.seed)
        if not made[tool].failure:
            rivals[tool] = Rival(folder / f"{tool}.onnx")

    timing = time_rivals(original, rivals, gate)
    verdict = timing.verdicts[RLFLOW]
    tools = {name: of_tool(each, timing.verdicts.get(name)) for name, each in made.items()}
    return {
        **of_timing(verdict),
        "control_ratio": verdict.control,
        "target": cell.target,
        "met": is_met(verdict, cell.target),
        "original_ms": timing.original_ms,
        "rounds": verdict.rounds,
        "rounds_retaken": timing.retaken,
        "best_public_tool": best_tool(tools),
        "public_tools": tools,
        "optimise": of_report(report, wall_time_s),
        "load": [before, os.getloadavg()[0]],
    }
