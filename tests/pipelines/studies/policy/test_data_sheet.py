"""The figures of the policy that ships, in closed form, and the sheet that tells them to people."""

from typing import Any

import pytest
from studies.policy.data_sheet import data_sheet, figures
from studies.policy.documents import Policy

from rlflow import schemas


def figure(value: float) -> dict[str, Any]:
    return {"value": value, "baseline": 0.5, "baseline_name": "rule_mean", "cases": 7}


def lesson(greedy: float, expert: float, policy: float, *, family: str = "bert", **other: Any) -> dict[str, Any]:
    return {
        "family": family,
        "model": "layers 2",
        "cost": "analytic",
        "start": "merged",
        "expert": "chains",
        "held_out": False,
        "steps": 3,
        "tokens": 5,
        "evaluations": 100,
        "seconds": 30.0,
        "greedy_percent": greedy,
        "expert_percent": expert,
        "policy_percent": policy,
    } | other


LESSONS = {
    "bert_one": lesson(2.0, 10.0, 10.0),
    "bert_other": lesson(2.0, 10.0, 4.0),
    "vit_nothing_to_find": lesson(5.0, 5.0, 5.0, family="vit"),
    "vit_held_out": lesson(0.0, 8.0, 6.0, family="vit", held_out=True, reading={"taken_auc": figure(0.9)}),
    "t5_held_out": lesson(
        0.0, 4.0, 5.0, family="t5", held_out=True, reading={"taken_auc": figure(0.8)}, seconds=1000.0
    ),
}


TRIAL = {
    "gpu": {
        "squeezenet": {
            "greedy_percent": 1.0,
            "portfolio_percent": 2.0,
            "searches": [
                {"rewrites": 200, "rlflow_percent": 1.5, "without_controller_percent": 1.25},
                {"rewrites": 500, "rlflow_percent": 3.0, "without_controller_percent": 2.5},
            ],
        }
    }
}


def test_the_figures_in_closed_form():
    found = figures(LESSONS, 500)
    schemas.validate(Policy, found)
    assert found["trained_on"] == {"lessons": 3, "families": 2, "evaluations": 300, "seconds": 90.0}
    assert [row.get("share") for row in found["lessons"].values()] == [1.0, 0.25, None, 0.75, 1.25]
    assert found["shares"]["trained"] == {"median": 0.625, "least": 0.25, "cases": 2}
    assert found["shares"]["held_out"] == {"median": 1.0, "least": 0.75, "cases": 2}
    assert found["reading"] == {
        "taken_auc": {"value": pytest.approx(0.85), "baseline": 0.5, "baseline_name": "rule_mean", "cases": 2}
    }


def test_what_no_lesson_tells_is_left_out():
    found = figures({"vit_nothing_to_find": LESSONS["vit_nothing_to_find"]}, 500)
    schemas.validate(Policy, found)
    assert found["shares"] == found["reading"] == {}


def test_the_sheet_says_where_it_fails():
    """Worst first, of all lessons; it says so, too, where it fails nowhere."""
    failing = _after(data_sheet(figures(LESSONS, 500), TRIAL), "## Where it fails")
    names = [line.split("|")[1].strip() for line in failing.splitlines() if line.startswith("| ")]
    assert names == ["lesson", "bert_other", "vit_held_out"]
    fine = _after(data_sheet(figures({"bert_one": LESSONS["bert_one"]}, 500), TRIAL), "## Where it fails")
    assert "| none |" in fine


def test_the_sheet_tells_on_what_it_was_trained_and_on_what_it_was_measured():
    sheet = data_sheet(figures(LESSONS, 500), TRIAL)
    trained, measured = (_after(sheet, title).split("\n## ")[0] for title in ("## Trained on what", "## Measured how"))
    assert "bert_one" in trained
    assert "vit_held_out" not in trained
    assert "| vit_held_out | layers 2 | merged | analytic | chains | 3 | 0.00 | 8.00 | 6.00 | 0.75 |" in measured
    assert "bert_one" not in measured
    assert "3 lessons on small graphs of 2 families" in trained
    assert "| held out | 1.00 | 0.75 | 2 |" in measured
    assert "| taken auc | 0.850 | 0.500 | 2 |" in measured
    assert "500 evaluations" in measured
    tried = _after(sheet, "## What it finds on whole models").split("\n## ")[0]
    assert "| prices | model | greedy | portfolio | 200, V | 200, C | 500, V | 500, C |" in tried
    assert "| gpu | squeezenet | 1.00 | 2.00 | 1.25 | 1.50 | 2.50 | 3.00 |" in tried


def test_rows_have_as_many_cells_as_columns():
    rows = [line for line in data_sheet(figures(LESSONS, 500), TRIAL).splitlines() if line.startswith("| bert")]
    assert {row.count("|") for row in rows} == {11}


def _after(text: str, title: str) -> str:
    return text[text.index(title) :]
