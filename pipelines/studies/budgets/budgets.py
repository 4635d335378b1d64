"""Find whether `rlflow optimise` keeps to its budget, and how much of what a long run finds it finds in a short one.

    python pipelines/study.py budgets                                     conf/study/budgets.yaml as it is
    python pipelines/study.py budgets 'graphs=[bert]' 'budgets_s=[15]'                     a part of it
    python pipelines/study.py budgets exports=FOLDER                      besides, every .onnx file of a folder
    python pipelines/study.py budgets 'long_models=[bert,vit]'            these with ten minutes, too

The figures go to data/results/budgets/metrics.json. A run that has ended is kept until all have, so that a study which
was killed goes on where it was, even with other graphs or budgets. One run at a time, on an otherwise quiet machine,
since everything is timed.
"""

import logging
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

from experiment.results import write_results
from omegaconf import DictConfig, OmegaConf
from tracking.run import numbers

from rlflow.cli.progress import progress_bar
from rlflow.errors import InputError, RLFlowError
from rlflow.kept import Kept
from studies.budgets.documents import Budgets
from studies.budgets.runs import Allowance, Run, run_command, summary
from studies.program import OptionOf, checkpoint, graph_files, options_of, study_program, study_run

RESULTS = Path("data/results/budgets")

log = logging.getLogger(__name__)


@study_program("budgets")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    with checkpoint("budgets", {"exports": settings["exports"]}) as folder, study_run("budgets", settings) as run:
        models = _models(settings, options_of("budgets"), folder)
        runs = _runs(models, settings, folder)
        document = summary(runs, Allowance(**settings["allowance"]), f"{settings['long_s']:g}")
        run.log(0, numbers({"budgets": document["budgets"]}))
        RESULTS.mkdir(parents=True, exist_ok=True)
        write_results(RESULTS / "metrics.json", Budgets, document)
        run.artifact(RESULTS)
        _refuse_gaps(runs, models, settings)


def _models(settings: Any, option_of: OptionOf, folder: Path) -> dict[str, Path]:
    """The files of the zoo's graphs, and exports of other architectures."""
    files = graph_files({graph: option_of("graph", graph) for graph in settings["graphs"]}, folder, processes=1)
    exports = Path(settings["exports"]).glob("*.onnx") if settings["exports"] else ()
    return files | {path.stem: path for path in sorted(exports)}


def _runs(models: dict[str, Path], settings: Any, folder: Path) -> dict[str, dict[str, Run]]:
    """The runs of each model by budget, without those that failed, of which the log has the reason."""
    wanted, kept = _wanted(models, settings), Kept[Run].as_json(folder)
    runs: dict[str, dict[str, Run]] = {}
    with progress_bar("budgets") as on_progress:
        for done, (name, budget_s) in enumerate(wanted):
            on_progress(done / len(wanted), f"{name} at {budget_s:g} s")
            try:
                found = kept.get_or(f"{name}-{budget_s:g}", partial(run_command, models[name], budget_s))
            except RLFlowError as error:
                log.error("%s", error)
            else:
                runs.setdefault(name, {})[f"{budget_s:g}"] = found
    return runs


def _wanted(models: Collection[str], settings: Any) -> list[tuple[str, float]]:
    """Every model at every budget, the short ones of all models before the long one of any."""
    if unknown := [name for name in settings["long_models"] if name not in models]:
        raise InputError(f"long_models names {', '.join(unknown)}: choose among {', '.join(models)}")
    short = [(name, budget_s) for budget_s in settings["budgets_s"] for name in models]
    return short + [(name, settings["long_s"]) for name in settings["long_models"]]


def _refuse_gaps(runs: dict[str, dict[str, Run]], models: dict[str, Path], settings: Any) -> None:
    wanted = _wanted(models, settings)
    if missing := {name for name, budget_s in wanted if f"{budget_s:g}" not in runs.get(name, {})}:
        raise RLFlowError(f"without all their runs, to be tried again by the next one: {', '.join(sorted(missing))}")
