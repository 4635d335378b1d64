"""A lesson on disk is held once, is complete or not there, and is found again only as long as nothing changes in it."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.detours import COST, detour_rules, detours, rules_astray

from rlflow.agents.match_level import lesson_files
from rlflow.agents.match_level.lesson_files import FILE, LessonRecord, Subject, fingerprint, hold, read, read_records
from rlflow.agents.match_level.lessons import Expert, Lesson, Start
from rlflow.cost.base import CostModel
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.rules.library import Library

LESSON = Lesson("one", expert=Expert("chains", {"depth": 2, "width": 2}))
SUBJECT = Subject({"entry": "detours", "settings": {"number": 2}}, {"kind": "analytic"})


def made() -> tuple[Graph, CostModel]:
    return detours(2), COST


def held(folder: Path, lesson: Lesson = LESSON, library: Library | None = None) -> LessonRecord:
    return hold(lesson, SUBJECT, folder, library or rules_astray(), made)


def test_a_record_tells_what_was_found_and_for_what_effort(tmp_path: Path):
    record = held(tmp_path)
    assert record.improvement_percent > 5
    assert (record.name, record.expert, record.steps, record.episodes) == ("one", "chains", 4, 1)
    assert record.tokens >= 2
    assert record.rewrites > 4
    assert record.seconds > 0
    assert read_records(tmp_path) == [record]
    assert record.subject == SUBJECT


def test_lessons_are_put_together(tmp_path: Path):
    records = [held(tmp_path, replace(LESSON, name=name)) for name in ("one", "other")]
    rollouts = read(records, tmp_path)
    assert rollouts.graphs == ("one", "other")
    assert len(rollouts.episodes) == 2
    assert len(rollouts.tokens) == records[0].tokens, "they show the same"


def test_what_was_held_is_not_held_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    record = held(tmp_path)
    monkeypatch.setattr(lesson_files, "teach", None)
    assert held(tmp_path) == record


def test_a_lesson_that_was_killed_is_held_again(tmp_path: Path):
    """All but the last file is there."""
    record = held(tmp_path)
    (tmp_path / record.folder / FILE).unlink()
    with pytest.raises(InputError, match="there are no lessons in"):
        read_records(tmp_path)
    assert replace(held(tmp_path), seconds=0.0) == replace(record, seconds=0.0)


@pytest.mark.parametrize(
    "other",
    [
        replace(LESSON, start=Start(walked=1)),
        replace(LESSON, expert=Expert("chains", {"depth": 3, "width": 2})),
        replace(LESSON, expert=replace(LESSON.expert, expansions=7)),
        replace(LESSON, gain=replace(LESSON.gain, horizon=1)),
        replace(LESSON, play=replace(LESSON.play, episodes=1)),
        replace(LESSON, seed=1),
    ],
    ids=["start", "options", "expansions", "gain", "play", "seed"],
)
def test_a_lesson_that_differs_has_another_fingerprint(other: Lesson):
    assert fingerprint(other, SUBJECT, "rules") != fingerprint(LESSON, SUBJECT, "rules")
    assert fingerprint(replace(LESSON), SUBJECT, "rules") == fingerprint(LESSON, SUBJECT, "rules")


def test_so_has_one_about_another_graph_by_other_prices_or_with_other_rules(tmp_path: Path):
    one = fingerprint(LESSON, SUBJECT, "rules")
    others = [
        fingerprint(LESSON, replace(SUBJECT, graph={"entry": "bert", "settings": {}}), "rules"),
        fingerprint(LESSON, replace(SUBJECT, cost={"kind": "gpu"}), "rules"),
        fingerprint(LESSON, SUBJECT, "other rules"),
    ]
    assert len({one, *others}) == 4
    assert held(tmp_path).folder != held(tmp_path, library=detour_rules()).folder
    assert len(read_records(tmp_path)) == 2


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"subject": {"graph": {}}}'])
def test_a_broken_record_is_refused(tmp_path: Path, content: str):
    record = held(tmp_path)
    (tmp_path / record.folder / FILE).write_text(content)
    with pytest.raises(InputError, match=r"there is no lesson in .*: hold it with `make study NAME=policy`"):
        read_records(tmp_path)
