"""Find how much faster the models of `rlflow optimise` run over ORT_ENABLE_ALL, beside those of public tools.

    python pipelines/study.py speedups                                            conf/study/speedups.yaml as it is
    python pipelines/study.py speedups 'models=[{graph: bert, target: 1.07}]'     a part of it

Beside the tools stands ONNX Runtime with its own optimisation off (`ort_disable_all`), which is faster on some models.
The figures go to data/results/speedups/metrics.json. A model that is done is kept until all are, so that a study which
was killed goes on where it was. The machine should be quiet: everything here is timed.
"""

import os
import shutil
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from experiment.results import write_results
from experiment.tables import speedups_table
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from tracking.factories import model_file_of
from tracking.provenance import source_tags
from tracking.run import numbers, open_run
from tracking.store import open_store

from rlflow.cli.progress import progress_bar
from rlflow.kept import Kept
from rlflow.method import OnProgress
from rlflow.optimise.gate import GateConfig
from rlflow.runtime.scratch import scratch_folder
from studies.budgets.runs import optimise_by_command
from studies.program import checkpoint_of, option, study_program
from studies.speedups.documents import Speedups
from studies.speedups.public_tools import Made, run_tool
from studies.speedups.ratios import Rival, best_tool, is_met, of_report, of_timing, of_tool, summary, time_rivals

RESULTS = Path("data/results/speedups/metrics.json")
RLFLOW, UNOPTIMISED = "rlflow", "ort_disable_all"


@study_program("speedups")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    overrides = HydraConfig.get().overrides.task
    folder = checkpoint_of("speedups", settings)

    tags = {"stage": "speedups", **source_tags(Path.cwd(), overrides)}
    rows, kept = dict[str, Any](), Kept[dict[str, Any]].as_json(folder)
    with open_run(open_store(), "speedups", parameters=settings, tags=tags) as run:
        for model in settings["models"]:
            name = model["graph"]
            graph = option("speedups", overrides, "graph", name)
            rows[name] = kept.get_or(name, partial(_timed, name, graph, model["target"], settings))
            run.log(0, numbers({name: rows[name]}))
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        write_results(RESULTS, Speedups, summary(rows, settings["budget_s"]))
        RESULTS.with_name("table.md").write_text(speedups_table(rows))
        run.artifact(RESULTS)
    shutil.rmtree(folder)


def _timed(name: str, graph: Any, target: float, settings: Any) -> dict[str, Any]:
    with progress_bar(name) as on_progress, scratch_folder() as scratch:
        return _row(graph, target, settings, scratch, on_progress)


def _row(graph: Any, target: float, settings: Any, folder: Path, on_progress: OnProgress) -> dict[str, Any]:
    """Everything about one model; the folder is for its file and those that are made of it."""
    gate = GateConfig(**settings["gate"], seed=settings["seed"])
    original, ours = model_file_of(graph, folder / "original.onnx"), folder / f"{RLFLOW}.onnx"
    before = os.getloadavg()[0]
    on_progress(0.0, f"rlflow optimise --budget {settings['budget_s']:g}s")
    report, wall_time_s = optimise_by_command(original, ours, settings["budget_s"])

    rivals = {RLFLOW: Rival(ours), UNOPTIMISED: Rival(original, "as_written")}
    made = {UNOPTIMISED: Made(version("onnxruntime"), wall_time_s=0.0)}
    for tool in settings["tools"]:
        on_progress(0.0, tool)
        made[tool] = run_tool(tool, original, folder / f"{tool}.onnx", draws=gate.draws, seed=gate.seed)
        if not made[tool].failure:
            rivals[tool] = Rival(folder / f"{tool}.onnx")

    timing = time_rivals(original, rivals, gate, on_progress)
    verdict = timing.verdicts[RLFLOW]
    tools = {name: of_tool(each, timing.verdicts.get(name)) for name, each in made.items()}
    return {
        **of_timing(verdict),
        "control_ratio": verdict.control,
        "target": target,
        "met": is_met(verdict, target),
        "original_ms": timing.original_ms,
        "rounds": verdict.rounds,
        "rounds_retaken": timing.retaken,
        "best_public_tool": best_tool(tools),
        "public_tools": tools,
        "optimise": of_report(report, wall_time_s),
        "load": [before, os.getloadavg()[0]],
    }
