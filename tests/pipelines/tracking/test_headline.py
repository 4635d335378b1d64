"""Of a stage's many figures a dozen are its headline, and each method's row has one of its own."""

import json
from pathlib import Path

import pytest
from experiment.results import read_results
from tracking.headline import FEW, headline, rows

STAGES = ("generate_rules", "collect_rollouts", "fit_world_model", "train_controller")


def test_few_figures_are_told_as_they_are():
    assert headline({"small": {"rules": 3, "share": 0.5}}, {}) == {"small/rules": 3.0, "small/share": 0.5}


def test_of_many_those_with_a_baseline_and_seconds_are_told():
    many = {f"count_{number}": number for number in range(FEW)}
    figures = {"small": {"saved": {"value": 4.5, "baseline": 1.0}, "training_s": 7.0, "losses": {"m_s": 1.0}, **many}}
    assert headline(figures, {}) == {"small/saved": 4.5, "small/training_s": 7.0}


def test_a_setting_is_no_result():
    """Whatever section it stands in; it is a parameter of the run. A result may have a setting's name."""
    figures = {"small": {"seed": 3, "temperature": 0.5, "saved": 4.5}}
    assert headline(figures, {"seed": 4})["small/seed"] == 3.0
    assert headline(figures, {"seed": 3, "controller": {"dream": {"temperature": 0.5}}}) == {"small/saved": 4.5}


@pytest.mark.parametrize("stage", STAGES)
def test_a_published_stage_has_about_a_dozen(stage: str, repository: Path):
    """Of some hundred numbers, for each graph or, where it has none, in all."""
    figures = read_results(repository / f"data/results/{stage}/metrics.json")
    told = headline(figures, {"seed": 0})
    graphs = 1 if stage == "generate_rules" else len(figures)
    assert 1 <= len(told) / graphs <= FEW
    assert json.dumps(figures).count(": ") > 2 * len(told)


def test_every_method_of_the_published_evaluation_has_a_row(repository: Path):
    """By the names under which the table of runs has them; the evaluation itself has no headline but its summary's."""
    evaluation = read_results(repository / "data/results/evaluate/metrics.json")
    found = {(graph, method): told for graph, method, told in rows(evaluation)}
    assert set(found) == {(graph, method) for graph, methods in evaluation.items() for method in methods}
    graph = next(iter(evaluation))
    row, told = evaluation[graph]["rlflow"], found[graph, "rlflow"]
    assert told["saved_percent"] == row["improvement_percent"]
    assert told["speedup"] == row["latency_ratio_deployed"]
    assert len(told) <= FEW
    assert headline(evaluation, {}) == {}


def test_figures_that_are_no_rows_have_none():
    assert list(rows({"small": {"saved": {"value": 4.5}}, "library": 3})) == []
