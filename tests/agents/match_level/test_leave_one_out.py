"""A policy without a family has had none of its lessons, and is fitted once."""

from pathlib import Path

import pytest
from support.detours import COST, detours, rules_astray
from support.token_worlds import SMALL

from rlflow.agents.match_level import leave_one_out
from rlflow.agents.match_level.guide import Guide
from rlflow.agents.match_level.leave_one_out import family_of, lessons_without, policy_without, rank_correlation
from rlflow.agents.match_level.lesson_files import Subject, hold, read_records
from rlflow.agents.match_level.lessons import Expert, Lesson
from rlflow.agents.match_level.rule_means import RuleMeans
from rlflow.errors import InputError


@pytest.fixture(scope="module")
def lessons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of each of three families, and one at other prices."""
    folder = tmp_path_factory.mktemp("lessons")
    for family, cost in (("a", "analytic"), ("b", "analytic"), ("c", "analytic"), ("a", "gpu")):
        lesson = Lesson(f"{family}-{cost}", expert=Expert("chains", {"depth": 2, "width": 2}))
        hold(lesson, Subject({"entry": family}, {"kind": cost}), folder, rules_astray(), lambda: (detours(1), COST))
    return folder


@pytest.mark.parametrize(
    ("family", "cost", "names"),
    [
        ("a", "analytic", ["b-analytic", "c-analytic"]),
        ("b", "analytic", ["a-analytic", "c-analytic"]),
        ("unknown", "analytic", ["a-analytic", "b-analytic", "c-analytic"]),
        ("b", "gpu", ["a-gpu"]),
        (None, "analytic", ["a-analytic", "b-analytic", "c-analytic"]),
    ],
)
def test_lessons_are_those_of_other_families_at_the_same_prices(
    lessons: Path, family: str | None, cost: str, names: list[str]
):
    found = lessons_without(family, cost, lessons)
    assert [record.name for record in found] == names
    assert family not in {family_of(record) for record in found}


def test_without_lessons_there_is_no_policy(lessons: Path, tmp_path: Path):
    with pytest.raises(InputError, match=r"holds no lesson at gpu prices but of a: .* `make study NAME=policy`"):
        policy_without("a", "gpu", lessons, SMALL, tmp_path, seed=0)


def test_a_policy_says_what_it_was_trained_on(lessons: Path, tmp_path: Path):
    place = policy_without("b", "analytic", lessons, SMALL, tmp_path, seed=0)
    trained_on, records = Guide.load(place).trained_on, lessons_without("b", "analytic", lessons)
    assert trained_on["lessons"] == [record.folder for record in records]
    assert trained_on["evaluations"] == sum(record.rewrites for record in records) > 0
    assert trained_on["seconds"] > trained_on["lessons_s"] > 0
    assert RuleMeans.load(place).taken


def test_a_policy_is_fitted_once(lessons: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """For its lessons and its seed; a fit that was killed has left no policy."""
    place = policy_without("b", "analytic", lessons, SMALL, tmp_path, seed=0)
    assert policy_without("b", "analytic", lessons, SMALL, tmp_path, seed=1) != place
    monkeypatch.setattr(leave_one_out, "fit_token_model", None)
    assert policy_without("b", "analytic", lessons, SMALL, tmp_path, seed=0) == place
    (place / "policy.json").unlink()
    with pytest.raises(TypeError):
        policy_without("b", "analytic", lessons, SMALL, tmp_path, seed=0)


def test_v_is_read_on_the_lessons_that_were_left_out(lessons: Path, tmp_path: Path):
    """On states of the one lesson of the family at these prices, the same at each call; refused where there is none."""
    place = policy_without("b", "analytic", lessons, SMALL, tmp_path, seed=0)
    (left_out_lesson,) = [
        record
        for record in read_records(lessons)
        if family_of(record) == "b" and record.subject.cost["kind"] == "analytic"
    ]
    found = rank_correlation(place, "b", "analytic", lessons)
    assert 0 < found.states <= left_out_lesson.steps + 1
    assert -1.0 <= found.value <= 1.0
    assert rank_correlation(place, "b", "analytic", lessons) == found
    with pytest.raises(InputError, match="holds no lesson of d at analytic prices"):
        rank_correlation(place, "d", "analytic", lessons)
