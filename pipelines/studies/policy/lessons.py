"""Hold the lessons that the policy learns from: all of them, or one worker's share.

    python pipelines/study.py policy.lessons                            those that nobody has held yet
    python pipelines/study.py policy.lessons workers=2 worker=1         every second one, beside another worker

They go to data/policy/lessons.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_model_of, graph_of

from rlflow.agents.match_level.lesson_files import hold
from rlflow.cost.base import CostModel
from rlflow.ir.graph import Graph
from rlflow.rules import library
from rlflow.rules.library import Library
from studies.policy.curriculum import Unit, units
from studies.policy.pieces import carry_out
from studies.program import options_of, study_program

LESSONS = Path("data/policy/lessons")
SECTIONS = ("seed", "gain", "play", "lesson", "lessons")


@study_program("policy")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    course, rules = units(settings, options_of("policy")), library.load()
    lessons = {unit.lesson.name: partial(_held, unit, rules) for unit in course}
    carry_out("policy_lessons", settings, {name: settings[name] for name in SECTIONS}, lessons, LESSONS)


def _held(unit: Unit, rules: Library, folder: Path) -> Mapping[str, float]:
    record = hold(unit.lesson, unit.subject, folder, rules, partial(_made, unit))
    return {name: getattr(record, name) for name in ("improvement_percent", "steps", "seconds")}


def _made(unit: Unit) -> tuple[Graph, CostModel]:
    return graph_of(unit.subject.graph), cost_model_of(unit.subject.cost)
