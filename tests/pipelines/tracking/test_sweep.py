"""The parent run of a sweep."""

import pickle
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest
from mlflow import MlflowClient
from omegaconf import OmegaConf
from tracking.sweep import SweepParent


@contextmanager
def run():
    yield "open"


def test_a_launcher_may_send_the_callback_to_jobs_elsewhere():
    """Submitit pickles what a job is called with while the parent is open, which a generator does not survive."""
    parent = SweepParent()
    assert parent._open.enter_context(run()) == "open"
    sent = pickle.loads(pickle.dumps(parent))
    sent._open.close()
    parent._open.close()


RETURNS_A_FIGURE = """
from tracking.stage import Stage, pipeline_stage


@pipeline_stage
def first(stage: Stage) -> float:
    stage.output("data/first").mkdir()
    stage.metrics.write_text("{}")
    return -abs(stage.settings["first"]["size"] - 3)


if __name__ == "__main__":
    first()
"""
SEARCH = """
defaults: [optuna, _self_]
direction: maximize
n_trials: 6
n_jobs: 2
sampler: {seed: 0}
params: {first.size: "range(1, 6)"}
"""


@pytest.mark.study  # half a minute
def test_optuna_makes_best_what_a_stage_returns(project: Path, command: Callable) -> None:
    """Six trials of five settings, two at a time, by a program of one folder and a sweeper of conf/."""
    (project / "pipelines/first.py").write_text(RETURNS_A_FIGURE)
    sweeper = project / "conf/hydra/sweeper/tune_first.yaml"
    sweeper.parent.mkdir(parents=True)
    sweeper.write_text(SEARCH)
    search = ("hydra/sweeper=tune_first", "hydra/launcher=joblib")
    command("python", "pipelines/first.py", "--multirun", *search, cwd=project)
    (found,) = project.glob("multirun/first/*/optimization_results.yaml")
    results = OmegaConf.load(found)

    runs = MlflowClient(f"sqlite:///{project / 'mlflow.db'}").search_runs(["1"])
    trials = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
    sizes = [int(run.data.params["first.size"]) for run in trials]
    assert len(trials) == 6
    assert len({run.data.tags["mlflow.parentRunId"] for run in trials}) == 1
    assert results.best_value == max(-abs(size - 3) for size in sizes)
    assert -abs(results.best_params["first.size"] - 3) == results.best_value
    assert len(set(sizes)) > 1, "otherwise any setting were the best"
