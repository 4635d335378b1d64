"""Find whether `rlflow optimise` keeps to its budget, and how much of what a long run finds it finds in a short one.

    python pipelines/study.py budgets                                     conf/study/budgets.yaml as it is
    python pipelines/study.py budgets 'graphs=[bert]' 'budgets_s=[15]'                     a part of it
    python pipelines/study.py budgets exports=FOLDER                      besides, every .onnx file of a folder
    python pipelines/study.py budgets 'long_models=[bert,vit]'            these with ten minutes, too
    python pipelines/study.py budgets busy_loops=1                        beside a busy loop

The figures go to a file that bears the processor's name, data/results/budgets/amd-epyc-25-1.json, and those of runs
beside busy loops to amd-epyc-25-1-busy.json. A run that has ended is kept until all have, so that a study which was
killed goes on where it was, even with other graphs or budgets. One run at a time, on an otherwise quiet machine, since
everything is timed.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from tracking.run import numbers

from rlflow.errors import InputError
from rlflow.runtime.hardware import processor_name
from studies.budgets.documents import Budgets
from studies.budgets.runs import Afterwards, Allowance, Command, Key, Run, run_command, summary
from studies.figures import nested
from studies.program import OptionOf, exported, graph_files, open_study, options_of, study_program
from studies.published import ROOT, publish

RESULTS = Path("data/results/budgets")
_COMMAND = "src/rlflow/cli/optimise.py"


@study_program("budgets")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    busy_loops = settings["busy_loops"]
    timed = partial(run_command, afterwards=Afterwards(**settings["afterwards"]), busy_loops=busy_loops)
    lasting = {name: settings[name] for name in ("exports", "afterwards", "busy_loops")}
    with open_study("budgets", settings, lasting=lasting) as study:
        models = _models(settings, options_of("budgets"), study.folder)
        if runs := study.rows(_commands(models, settings), timed, _told):
            document = summary(nested(runs), Allowance(**settings["allowance"]), f"{settings['long_s']:g}")
            study.run.log(0, numbers({"budgets": document["budgets"]}))
            place = RESULTS / f"{processor_name()}{'-busy' if busy_loops else ''}.json"
            publish(place, Budgets, document, __file__, ROOT / _COMMAND)
            study.run.artifact(RESULTS)


def _models(settings: Any, option_of: OptionOf, folder: Path) -> dict[str, Path]:
    """The files of the zoo's graphs, and exports of other architectures."""
    files = graph_files({graph: option_of("graph", graph) for graph in settings["graphs"]}, folder, processes=1)
    return files | {name: Path(section["path"]) for name, section in exported(settings["exports"]).items()}


def _commands(models: Mapping[str, Path], settings: Any) -> dict[Key, Command]:
    """Every model at every budget, the short ones of all models before the long one of any."""
    if unknown := [name for name in settings["long_models"] if name not in models]:
        raise InputError(f"long_models names {', '.join(unknown)}: choose among {', '.join(models)}")
    short = [(name, budget_s) for budget_s in settings["budgets_s"] for name in models]
    long = [(name, settings["long_s"]) for name in settings["long_models"]]
    return {(name, f"{budget_s:g}"): Command(models[name], budget_s) for name, budget_s in short + long}


def _told(_: object, key: Key, run: Run) -> str:
    return f"{run['wall_time_s']:.1f} s"
