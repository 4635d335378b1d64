"""The curriculum of the policy: lessons, of which some are held out to measure it, and graphs on which it practises.

    course = units(settings, options_of("policy"))           settings: those of conf/study/policy.yaml
    course[0].lesson.name                                    "bert_cls": the family's lesson "cls"
    subjects = practice_subjects(settings, options_of("policy"))
    subjects["bert_deep_gpu"]                                the family's graph "deep", by the prices of cost "gpu"

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


@dataclass(frozen=True)
class _Practised:
    """The settings of one graph of the practice, and the names of the costs by which it is played."""

    model: Mapping[str, Any]
    costs: tuple[str, ...]


def practice_subjects(settings: Mapping[str, Any], option_of: OptionOf) -> dict[str, Subject]:
    """Return the graphs of the practice with their prices, by name. `InputError` as `units`."""
    cost_of, practice = cache(partial(option_of, "cost")), settings["practice"]
    practised = {
        (family, name): read_config(_Practised, {**practice["graph"], **own})
        for family, graphs in practice["graphs"].items()
        for name, own in graphs.items()
    }
    return {
        f"{family}_{name}_{cost}": Subject(_graph(family, graph.model), cost_of(cost))
        for (family, name), graph in practised.items()
        for cost in graph.costs
    }


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
    return Unit(family, lesson, Subject(_graph(family, section.model), cost_of(section.cost)), section.held_out)


def _graph(family: str, model: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "zoo", "entry": family, "settings": model}
