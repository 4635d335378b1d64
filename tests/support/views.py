"""What DVC shows of results: summaries and rows of plots, each with how it follows from the stored figures."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from experiment import plot_rows, stage_summaries
from experiment.plot_rows import write_rows
from experiment.results import read_results
from experiment.stage_summaries import write_summary

SUMMARIES = {
    "rules": ("generate_rules", stage_summaries.of_rules),
    "rollouts": ("collect_rollouts", stage_summaries.of_rollouts),
    "world_model": ("fit_world_model", stage_summaries.of_world_model),
    "controller": ("train_controller", stage_summaries.of_controller),
    "evaluation": ("evaluate", stage_summaries.of_evaluation),
    "sweep": ("temperature_sweep", stage_summaries.of_sweep),
}
ROWS = {
    "fit_world_model/losses": ("curves", plot_rows.losses),
    "fit_world_model/dream_errors": ("metrics", plot_rows.dream_errors),
    "fit_world_model/calibration": ("metrics", plot_rows.calibration),
    "train_controller/scores": ("curves", plot_rows.training_scores),
    "evaluate/latency_ratios": ("metrics", plot_rows.latency_ratios),
    "evaluate/savings": ("metrics", plot_rows.savings),
    "temperature_sweep/scores": ("metrics", plot_rows.scores_by_temperature),
}


def write_views(results: Path, folder: Path) -> list[str]:
    """Write below `folder` all that follows from the figures in `results`; returns the paths there."""
    writers = _writers(results)
    for path, write in writers.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write(folder / path)
    return list(writers)


def _writers(results: Path) -> dict[str, Callable[[Path], None]]:
    """What writes each file, by its path below the results."""

    def read(path: str) -> Any:
        return read_results(results / path)

    summaries = {
        f"{name}.yaml": partial(_write, write_summary, of, read(f"{stage}/metrics.json"))
        for name, (stage, of) in SUMMARIES.items()
    }
    rows = {
        f"{name}.csv": partial(_write, write_rows, of, read(f"{Path(name).parent}/{source}.json"))
        for name, (source, of) in ROWS.items()
    }
    return summaries | rows


def _write(write: Callable[[Path, Any], None], of: Callable[[Any], Any], document: Any, path: Path) -> None:
    write(path, of(document))
