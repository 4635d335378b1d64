"""The rows behind the plots that dvc.yaml declares, each made from a results document and from nothing else.

    write_rows(Path("latency_ratios.csv"), latency_ratios(read_results(Path("data/results/evaluate/metrics.json"))))

A row is a point: `graph` says which panel it is in, `series` which line or mark of the panel, the rest where it is.
DVC draws them with the templates in `.dvc/plots`, those of several experiments in one picture.

The invariant: as for figures (`experiment.figures`), what is drawn is stored elsewhere.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiment.tables import Metrics
from rlflow.runtime.session import SETTINGS

Graphs = Mapping[str, Mapping[str, Any]]
_SCORES = {"return_percent": "in the dream", "real_score_percent": "on the graph"}
_SHARES = {"value": "calibrated", "baseline": "as learned"}


@dataclass(frozen=True)
class Rows:
    """Points of a plot; the columns are known even where there is no point."""

    columns: tuple[str, ...]
    points: Sequence[tuple[str | float | None, ...]]


def write_rows(path: Path, rows: Rows) -> None:
    """Write rows as CSV with a header; None is an empty cell."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(rows.columns)
        table.writerows(rows.points)


def losses(curves: Graphs) -> Rows:
    """The losses of a world model by epoch; `curves` follows schema `curves`."""
    points = [
        (graph, name, step, value)
        for graph, drawn in curves.items()
        for name, curve in drawn.items()
        for step, value in _points(curve)
    ]
    return Rows(("graph", "series", "epoch", "loss"), points)


def training_scores(curves: Graphs) -> Rows:
    """The savings of a controller by update, in the dream and on the graph itself; `curves` follows schema `curves`."""
    points = [
        (graph, world, step, value)
        for graph, drawn in curves.items()
        for name, world in _SCORES.items()
        for step, value in _points(drawn.get(name))
    ]
    return Rows(("graph", "series", "update", "saved_percent"), points)


def dream_errors(metrics: Graphs) -> Rows:
    """The errors of dreams over those of their baselines by horizon; `metrics` follows schema `fit_world_model`.

    Below 1, a dream is better than its baseline. Those of a baseline without error are left out.
    """
    points = [
        (graph, row["target"], row["horizon"], row["error"]["value"] / row["error"]["baseline"])
        for graph, found in metrics.items()
        for row in found["open_loop"]
        if row["error"]["baseline"]
    ]
    return Rows(("graph", "series", "imagined_steps", "error_over_baseline"), points)


def calibration(metrics: Graphs) -> Rows:
    """The shares of errors that lie within what the world model says; `metrics` follows schema `fit_world_model`."""
    points = [
        (graph, series, row["nominal_percent"], share)
        for graph, found in metrics.items()
        for row in found.get("calibration", [])
        for series, share in _shares(row).items()
    ]
    return Rows(("graph", "series", "nominal_percent", "share_percent"), points)


def latency_ratios(metrics: Metrics) -> Rows:
    """The measured latency ratios with their 95 % intervals, by method; `metrics` follows schema `evaluate`."""
    points = [
        (graph, method, setting, row[f"latency_ratio_{setting}"], *row[f"latency_ratio_{setting}_ci95"])
        for graph, methods in metrics.items()
        for method, row in methods.items()
        for setting in SETTINGS
    ]
    return Rows(("graph", "series", "setting", "latency_ratio", "low", "high"), points)


def savings(metrics: Metrics) -> Rows:
    """The share of a graph's predicted cost that each method saves; `metrics` follows schema `evaluate`."""
    points = [
        (graph, method, "predicted", row["improvement_percent"])
        for graph, methods in metrics.items()
        for method, row in methods.items()
    ]
    return Rows(("graph", "series", "setting", "saved_percent"), points)


def scores_by_temperature(metrics: Graphs) -> Rows:
    """Scores in the dream and in reality by temperature, with 95 % intervals if there are several seeds.

    `metrics` follows schema `temperature_sweep` (the paper's Table 3).
    """
    points = [
        (graph, world, point["temperature"], point[f"{world}_score_percent"], *_interval(point, world))
        for graph, sweep in metrics.items()
        for point in sweep["points"]
        for world in ("dream", "real")
    ]
    return Rows(("graph", "series", "temperature", "saved_percent", "low", "high"), points)


def _points(curve: Mapping[str, Any] | None) -> Iterator[tuple[float, float]]:
    return zip(curve["step"], curve["value"], strict=True) if curve else iter(())


def _shares(row: Mapping[str, Any]) -> dict[str, float]:
    """The shares of one nominal one, in percent, the ideal among them."""
    found = {series: 100 * row["share"][key] for key, series in _SHARES.items()}
    return found | {"ideal": row["nominal_percent"]}


def _interval(point: Mapping[str, Any], world: str) -> Sequence[float | None]:
    return point.get(f"{world}_score_percent_ci95", (None, None))
