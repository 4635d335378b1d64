"""The lessons of a configuration: what each is about, and whether the policy may learn from it.

    course = units(settings, options_of("policy"))           settings: those of conf/study/policy.yaml
    course[0].lesson.name                                    "bert_cls": the family's lesson "cls"

A family is an entry of the zoo, so that a study can leave one out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from rlflow.agents.match_level.demonstrations import GainConfig
from rlflow.agents.match_level.lesson_files import Subject
from rlflow.agents.match_level.lessons import Expert, Lesson, Start
from rlflow.agents.token_collection import TokenCollectionConfig
from rlflow.settings import read_config
from studies.program import OptionOf


@dataclass(frozen=True)
class Unit:
    """A lesson of a course. held_out: it measures the policy, which does not learn from it."""

    family: str
    lesson: Lesson
    subject: Subject
    held_out: bool


@dataclass(frozen=True)
class _Section:
    """The settings of one lesson; start, expert and cost as their own sections or names say."""

    model: Mapping[str, Any]
    start: Mapping[str, Any]
    expert: Mapping[str, Any]
    cost: str
    held_out: bool


def units(settings: Mapping[str, Any], option_of: OptionOf) -> list[Unit]:
    """Return all lessons, family by family. `InputError` for a setting that a lesson does not have."""
    cost_of = cache(partial(option_of, "cost"))
    return [
        _unit(family, name, read_config(_Section, {**settings["lesson"], **own}), settings, cost_of)
        for family, lessons in settings["lessons"].items()
        for name, own in lessons.items()
    ]


def _unit(
    family: str,
    name: str,
    section: _Section,
    settings: Mapping[str, Any],
    cost_of: Callable[[str], Mapping[str, Any]],
) -> Unit:
    lesson = Lesson(
        name=f"{family}_{name}",
        start=read_config(Start, section.start),
        expert=read_config(Expert, section.expert),
        gain=read_config(GainConfig, settings["gain"]),
        play=read_config(TokenCollectionConfig, settings["play"]),
        seed=settings["seed"],
    )
    graph = {"kind": "zoo", "entry": family, "settings": section.model}
    return Unit(family, lesson, Subject(graph, cost_of(section.cost)), section.held_out)
