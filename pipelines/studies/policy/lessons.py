"""Hold the lessons that the policy learns from: all of them, or one worker's share.

    python pipelines/study.py policy.lessons                            those that nobody has held yet
    python pipelines/study.py policy.lessons workers=2 worker=1         every second one, beside another worker

A lesson is kept as soon as it was held, so that a run that was killed goes on where it was. The run that is no worker's
holds what workers have left over, and moves all to data/policy/lessons.
"""

import logging
import shutil
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_model_of, graph_of
from tracking.share import Share

from rlflow.agents.match_level.lesson_files import hold
from rlflow.cli.progress import progress_bar
from rlflow.cost.base import CostModel
from rlflow.ir.graph import Graph
from rlflow.rules import library
from studies.policy.curriculum import Unit, units
from studies.program import checkpoint_of, options_of, study_program, study_run

LESSONS = Path("data/policy/lessons")
SECTIONS = ("seed", "gain", "play", "lesson", "lessons")

log = logging.getLogger(__name__)


@study_program("policy")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    share = Share(settings["worker"], settings["workers"])
    course = units(settings, options_of("policy"))
    own = [course[number] for number in share.of(len(course))]
    folder = checkpoint_of("policy_lessons", {name: settings[name] for name in SECTIONS})
    rules = library.load()
    with study_run("policy_lessons", settings) as run, progress_bar("lessons") as on_progress:
        for number, unit in enumerate(own):
            record = hold(unit.lesson, unit.subject, folder, rules, partial(_made, unit))
            figures = {name: getattr(record, name) for name in ("improvement_percent", "steps", "seconds")}
            run.log(number, figures)
            log.info("%s: %s", record.name, figures)
            on_progress((number + 1) / len(own), f"{record.name}, {record.improvement_percent:.1f} %")

    if share.workers == 1:
        shutil.rmtree(LESSONS, ignore_errors=True)
        LESSONS.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder, LESSONS)


def _made(unit: Unit) -> tuple[Graph, CostModel]:
    return graph_of(unit.subject.graph), cost_model_of(unit.subject.cost)
