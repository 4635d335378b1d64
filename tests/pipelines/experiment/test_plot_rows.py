"""The rows of DVC's plots: every stored point is there, where the figure of it says."""

import csv
from pathlib import Path
from typing import Any

import pytest
from experiment import plot_rows
from experiment.plot_rows import Rows, write_rows
from support import documents as examples


@pytest.fixture
def documents() -> dict[str, Any]:
    return examples.documents()


def test_ratios_with_their_intervals(documents: dict[str, Any]):
    rows = plot_rows.latency_ratios(documents["evaluate"])
    assert rows.columns == ("graph", "series", "setting", "latency_ratio", "low", "high")
    assert len(rows.points) == 2 * (5 + 2), "each method at each setting, on each graph"
    assert ("bert", "greedy", "as_written", 1.06, pytest.approx(1.05), pytest.approx(1.08)) in rows.points
    assert ("tiny", "greedy", "predicted", 20.0) in plot_rows.savings(documents["evaluate"]).points


def test_errors_are_told_over_their_baselines(documents: dict[str, Any]):
    fit = documents["fit_world_model"]
    assert plot_rows.dream_errors(fit).points == [
        ("bert", "z", 5, pytest.approx(1.8)),
        ("tiny", "return", 4, pytest.approx(1.8)),
    ]
    fit["bert"]["open_loop"][0]["error"]["baseline"] = 0.0
    assert [graph for graph, *_ in plot_rows.dream_errors(fit).points] == ["tiny"]


def test_calibration_stands_beside_the_ideal(documents: dict[str, Any]):
    """That of a pooled world model has no point: there is none."""
    points = plot_rows.calibration(documents["fit_world_model"]).points
    assert points == [
        ("tiny", "calibrated", 80, 90.0),
        ("tiny", "as learned", 80, 50.0),
        ("tiny", "ideal", 80, 80),
    ]


def test_dream_and_reality_by_temperature(documents: dict[str, Any]):
    sweep = documents["temperature_sweep"]
    graph, first = next((graph, found["points"][0]) for graph, found in sweep.items())
    del first["dream_score_percent_ci95"]
    points = plot_rows.scores_by_temperature(sweep).points
    assert points[0] == (graph, "dream", first["temperature"], first["dream_score_percent"], None, None)
    assert points[1][3:] == (first["real_score_percent"], *first["real_score_percent_ci95"])


def test_curves_point_by_point():
    def curve(*values: float) -> dict[str, Any]:
        return {"unit": "%", "step_name": "update", "step": [1, 2][: len(values)], "value": list(values)}

    curves = {"bert": {"return_percent": curve(0.5, 0.7), "sigma": curve(1.0), "real_score_percent": curve(2.0)}}
    assert plot_rows.training_scores(curves).points == [
        ("bert", "in the dream", 1, 0.5),
        ("bert", "in the dream", 2, 0.7),
        ("bert", "on the graph", 1, 2.0),
    ]
    assert len(plot_rows.losses(curves).points) == 4


def test_a_table_without_points_has_its_header(tmp_path: Path):
    path = tmp_path / "rows.csv"
    write_rows(path, Rows(("graph", "low"), []))
    assert path.read_text() == "graph,low\n"
    write_rows(path, Rows(("graph", "low"), [("bert, two", None)]))
    assert list(csv.DictReader(path.read_text().splitlines())) == [{"graph": "bert, two", "low": ""}]
