"""The few figures of each stage that fit a terminal: `dvc metrics show`, `dvc metrics diff`, `dvc exp show`.

    write_summary(stage.summary, of_evaluation(metrics))        saved_%: 3.41
                                                                speedup: 1.02

Each is one number for all graphs, the mean unless it says otherwise, of those in the stage's metrics.json. All stages
share one table, a hundred characters wide; so names are short, and none is that of another stage's figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

from experiment.tables import Metrics

Summary = dict[str, float]
Graphs = Mapping[str, Mapping[str, Any]]
_DIGITS = {"rules": 0, "speedup": 3}
_OTHER_DIGITS = 2


def write_summary(path: Path, summary: Summary) -> None:
    """Write the figures as YAML, with as many digits as are read."""
    lines = [f"{name}: {value:.{_DIGITS.get(name, _OTHER_DIGITS)}f}\n" for name, value in summary.items()]
    path.write_text("".join(lines), encoding="utf-8")


def of_rules(metrics: Mapping[str, Any]) -> Summary:
    """The number of rules; `metrics` follows schema `generate_rules`."""
    return {"rules": metrics["library"]["rules"]}


def of_rollouts(metrics: Graphs) -> Summary:
    """The saving of the best episode, in percent; `metrics` follows schema `collect_rollouts`."""
    return {"best_%": fmean(found["best_improvement_percent"]["value"] for found in metrics.values())}


def of_world_model(metrics: Graphs) -> Summary:
    """A figure of how far the model can be trusted; `metrics` follows schema `fit_world_model`.

    Over match tokens it is V's R² on the savings of matches, where all graphs have one; else the error of the longest
    dreams over their baselines'.
    """
    if all("saving_r2" in found for found in metrics.values()):
        return {"v_r2": fmean(found["saving_r2"]["value"] for found in metrics.values())}
    ratios = [_longest_error(found["open_loop"]) for found in metrics.values()]
    return {"m_err": fmean(ratios)}


def of_controller(metrics: Graphs) -> Summary:
    """The saving of the policy alone on the graph, in percent; `metrics` follows schema `train_controller`."""
    return {"real_%": fmean(found["real_score_percent"]["value"] for found in metrics.values())}


def of_evaluation(metrics: Metrics) -> Summary:
    """The saving of the agent, in percent of the predicted cost, and its speed-up as deployed.

    The latter is a geometric mean. `metrics` follows schema `evaluate`.
    """
    rows = [methods["rlflow"] for methods in metrics.values()]
    return {
        "saved_%": fmean(row["improvement_percent"] for row in rows),
        "speedup": geometric_mean(row["latency_ratio_deployed"] for row in rows),
    }


def of_sweep(metrics: Graphs) -> Summary:
    """The largest gap between dream and reality, of all graphs and temperatures, in percent of the larger score.

    `metrics` follows schema `temperature_sweep`.
    """
    return {"gap_%": max(gaps(point for sweep in metrics.values() for point in sweep["points"]))}


def gaps(points: Iterable[Mapping[str, Any]]) -> list[float]:
    """The gap between the scores in dream and reality at each temperature, in percent of the larger one."""
    scores = [(point["dream_score_percent"], point["real_score_percent"]) for point in points]
    return [100 * abs(dream - real) / (max(abs(dream), abs(real)) or 1.0) for dream, real in scores]


def _longest_error(rows: Iterable[Mapping[str, Any]]) -> float:
    """The mean over targets of error over baseline, of the dreams of the longest horizon; 0 without any error."""
    defined = [row for row in rows if row["error"]["baseline"]]
    longest = max((row["horizon"] for row in defined), default=0)
    ratios = [row["error"]["value"] / row["error"]["baseline"] for row in defined if row["horizon"] == longest]
    return fmean(ratios) if ratios else 0.0
