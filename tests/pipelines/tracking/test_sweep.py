"""The parent run of a sweep."""

import pickle
import signal
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest
from mlflow import MlflowClient
from omegaconf import OmegaConf
from tracking.store import open_store
from tracking.sweep import PARENT_VARIABLE, Job, SweepParent, asked_for, label, swept_job


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


@pytest.mark.parametrize(
    ("overrides", "params", "name", "tag"),
    [
        (
            ["temperature=0.5,1", "seed=range(2)", "first.size=3"],
            {},
            "first by temperature and seed",
            "temperature seed",
        ),
        (["seed=1"], {"temperature": "0.5,1", "seed": "0,1"}, "first by temperature", "temperature"),
        (["first.size=3"], {}, "first", ""),
    ],
)
def test_the_parent_is_named_by_what_is_swept_over(
    overrides: list[str], params: dict[str, str], name: str, tag: str, store_root: Path, monkeypatch: pytest.MonkeyPatch
):
    """On the command line or by the sweeper's settings, of which the command line leaves some out."""
    monkeypatch.setenv(PARENT_VARIABLE, "none")  # which is restored
    config = OmegaConf.create(
        {"hydra": {"job": {"name": "first"}, "overrides": {"task": overrides}, "sweeper": {"params": params}}}
    )
    parent, store = SweepParent(), open_store()
    parent.on_multirun_start(config)
    job = swept_job(["temperature=0.5", "seed=1", "first.size=3"], store)
    assert job is not None
    parent.on_multirun_end(config)
    stored = store.client.get_run(job.parent_id)
    assert (stored.info.run_name, stored.data.tags["swept"], stored.info.status) == (name, tag, "FINISHED")
    assert [key for key in job.swept] == tag.split()
    assert stored.data.params.keys() == set(tag.split())
    assert asked_for(config)[-len(overrides) :] == overrides


def test_a_job_is_named_by_its_values():
    assert label(Job("parent", {"temperature": "0.5", "seed": "1"}).swept) == "temperature=0.5 seed=1"
    assert label({}) == ""


def test_outside_a_multirun_there_is_no_job(store_root: Path):
    assert swept_job(["seed=1"], open_store()) is None


KILLED_ONCE = """
import os
import signal
from pathlib import Path

from tracking.stage import Stage, pipeline_stage


@pipeline_stage
def first(stage: Stage) -> float:
    with Path("worked.txt").open("a") as worked:
        worked.write(f"{stage.seed} ")
    if stage.seed == int(os.environ.get("KILL_AT", "-1")):
        os.kill(os.getpid(), signal.SIGKILL)
    stage.output("data/first").mkdir()
    stage.metrics.write_text("{}")
    stage.run.log(0, {"size": 3.0})
    return 3.0


if __name__ == "__main__":
    first()
"""


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on_where_it_was(project: Path, command: Callable) -> None:
    """What is done is a child of the sweep that goes on, and is done again only if its settings have changed."""
    (project / "pipelines/first.py").write_text(KILLED_ONCE)
    sweep = ("python", "pipelines/first.py", "--multirun")
    killed = command(*sweep, "seed=0,1,2", cwd=project, check=False, KILL_AT="1")
    assert killed.returncode == -signal.SIGKILL
    command(*sweep, "seed=0,1,2", cwd=project)
    wider = command(*sweep, "seed=0,1,2,3", cwd=project)
    assert (project / "worked.txt").read_text() == "0 1 1 2 3 "
    assert "first seed=0: done before, in multirun/first/seed=0" in wider.stdout

    store = open_store(project)
    runs = store.client.search_runs([store.experiment_id])
    parents = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    jobs = {run.info.run_name: run for run in runs if run not in parents}
    assert [run.info.run_name for run in parents] == ["first by seed"], "sweeps that have lost their jobs are gone"
    assert sorted(jobs) == [f"seed={seed}" for seed in range(4)]
    assert {run.data.tags["mlflow.parentRunId"] for run in jobs.values()} == {parents[0].info.run_id}
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert [jobs[f"seed={seed}"].data.params["seed"] for seed in range(4)] == ["0", "1", "2", "3"]

    config = project / "conf/config.yaml"
    config.write_text(config.read_text().replace("size: 3", "size: 4"))
    command(*sweep, "seed=0", cwd=project)
    assert (project / "worked.txt").read_text().endswith("3 0 ")


@pytest.mark.slow
def test_a_job_that_fails_costs_the_others_nothing(project: Path, command: Callable) -> None:
    """The sweep has failed and stays, as its other jobs do; the job lies aside."""
    fails = 'if stage.seed == 1:\n        raise ValueError("in the middle")\n    stage.output'
    (project / "pipelines/first.py").write_text(KILLED_ONCE.replace("stage.output", fails, 1))
    failed = command("python", "pipelines/first.py", "--multirun", "seed=0,1,2", cwd=project, check=False)
    assert failed.returncode == 1
    assert "in the middle" in failed.stderr
    store = open_store(project)
    found = store.client.search_runs([store.experiment_id])
    assert {run.info.run_name: run.info.status for run in found} == {
        "first by seed": "FAILED",
        "seed=0": "FINISHED",
        "seed=2": "FINISHED",
    }
    assert [run.info.run_name for run in store.client.search_runs([store.aside_id])] == ["seed=1"]


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
    results = OmegaConf.load(project / "multirun/first/optimization_results.yaml")

    runs = MlflowClient(f"sqlite:///{project / 'mlflow.db'}").search_runs(["1"])
    trials = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
    sizes = [int(run.data.params["first.size"]) for run in trials]
    assert len(set(sizes)) == len(sizes), "a setting that was tried is not tried again"
    assert len({run.data.tags["mlflow.parentRunId"] for run in trials}) == 1
    assert results.best_value == max(-abs(size - 3) for size in sizes)
    assert -abs(results.best_params["first.size"] - 3) == results.best_value
    assert len(set(sizes)) > 1, "otherwise any setting were the best"
