"""Lessons on disk: each in a folder of its own, so that several workers hold different ones, and a kill costs one.

    subject = Subject({"entry": "bert", "settings": {"layers": 2}}, {"kind": "analytic"})
    record = hold(lesson, subject, folder, library, lambda: (graph, cost_model))
    rollouts = read([record], folder)

A folder bears the lesson's name and a digest of all that it depends on: the lesson itself, the graph, the prices, the
rules and the vocabulary. A lesson whose folder is there is not held again.

The invariant: a folder is there as a whole or not at all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from rlflow.agents.match_level.lessons import Lesson, teach
from rlflow.cost.base import CostModel
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.kept import Kept
from rlflow.kept import fingerprint as digest_of
from rlflow.representation import token_archive
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.representation.token_shards import merged
from rlflow.representation.tokeniser import todays_token_vocabulary
from rlflow.rules.library import Library

FILE = "lesson.json"
_IN_FILES = {"rewrites": "evaluations"}
"""The names that fields of a record have in its file, where those differ."""


@dataclass(frozen=True)
class Subject:
    """The graph of a lesson and its prices, as the sections that the graph and the cost model are made from."""

    graph: Mapping[str, Any]
    cost: Mapping[str, Any]


@dataclass(frozen=True)
class LessonRecord:
    """A lesson that was held.

    improvement_percent, steps: of the expert; seconds, all that holding it took; rewrites, those carried out.
    """

    name: str
    fingerprint: str
    subject: Subject
    expert: str
    improvement_percent: float
    steps: int
    episodes: int
    tokens: int
    rewrites: int
    seconds: float

    @property
    def folder(self) -> str:
        """The name of the folder that holds the lesson."""
        return f"{self.name}-{self.fingerprint}"


def fingerprint(lesson: Lesson, subject: Subject, library_hash: str) -> str:
    """Return a digest of all that a lesson's rollouts depend on, apart from the code."""
    return digest_of(lesson, subject, library_hash, todays_token_vocabulary())


@dataclass(frozen=True, eq=False)
class _Held:
    """A lesson's record and its rollouts."""

    record: LessonRecord
    rollouts: TokenRollouts

    def save(self, place: Path) -> None:
        token_archive.save(self.rollouts, place)
        content = {_IN_FILES.get(name, name): value for name, value in asdict(self.record).items()}
        (place / FILE).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, place: Path) -> _Held:
        return cls(read_record(place), token_archive.load(place))


def hold(
    lesson: Lesson,
    subject: Subject,
    folder: Path,
    library: Library,
    make: Callable[[], tuple[Graph, CostModel]],
) -> LessonRecord:
    """Hold a lesson, unless it was held before; `make` makes the graph and the cost model of its subject."""
    digest = fingerprint(lesson, subject, library.hash)

    def held() -> _Held:
        started = time.perf_counter()
        graph, cost_model = make()
        taught = teach(lesson, graph, library, cost_model)
        record = LessonRecord(
            name=lesson.name,
            fingerprint=digest,
            subject=subject,
            expert=lesson.expert.method,
            improvement_percent=taught.found.improvement_percent,
            steps=len(taught.found.trajectory.steps),
            episodes=len(taught.rollouts.episodes),
            tokens=len(taught.rollouts.tokens),
            rewrites=taught.rewrites,
            seconds=time.perf_counter() - started,
        )
        return _Held(record, taught.rollouts)

    return Kept(folder, _Held.save, _Held.load).get_or(f"{lesson.name}-{digest}", held).record


def read_record(place: Path) -> LessonRecord:
    """Read the record of the lesson in one folder. `InputError` if there is none."""
    try:
        content = json.loads((place / FILE).read_text(encoding="utf-8"))
        figures = {entry.name: content[_IN_FILES.get(entry.name, entry.name)] for entry in fields(LessonRecord)}
        return LessonRecord(**figures | {"subject": Subject(**content["subject"])})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"there is no lesson in {place} ({error}): hold it with `make study NAME=policy`") from None


def read_records(folder: Path) -> list[LessonRecord]:
    """Read the records of all lessons below a folder, in the order of their names. `InputError` if there is none."""
    places = sorted(path.parent for path in folder.glob(f"*/{FILE}"))
    if not places:
        raise InputError(f"there are no lessons in {folder}: hold some with `make study NAME=policy`")
    return [read_record(place) for place in places]


def read(records: Sequence[LessonRecord], folder: Path) -> TokenRollouts:
    """Put the rollouts of lessons together."""
    return merged([token_archive.load(folder / record.folder) for record in records])
