import signal
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path

import pytest
from support.stages import killed_while_running
from tracking.run import open_run
from tracking.store import PROCESS_TAG, SWEPT_TAG, Store, close_abandoned_runs, open_store

from rlflow.errors import InputError


def test_killed_run_is_marked_at_the_next_start(store_root: Path):
    process = get_context("spawn").Process(target=killed_while_running, args=(store_root,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    store = open_store(store_root)
    (run,) = store.client.search_runs([store.aside_id])
    assert run.info.status == "KILLED"
    assert run.data.metrics == {"loss": 1.0}
    assert store.client.search_runs([store.experiment_id]) == []


def test_running_process_keeps_its_run(store_root: Path):
    store = open_store(store_root)
    with open_run(store, "stage/graph/0", parameters={}, tags={}) as run:
        assert close_abandoned_runs(store) == []
        assert store.client.get_run(run.run_id).info.status == "RUNNING"
    assert store.client.get_run(run.run_id).info.status == "FINISHED"


def test_run_of_another_host_is_left_alone(store_root: Path):
    store = open_store(store_root)
    run = store.client.create_run(store.experiment_id, tags={PROCESS_TAG: "elsewhere 1 1.00"})
    assert close_abandoned_runs(store) == []
    assert store.client.get_run(run.info.run_id).info.status == "RUNNING"


@pytest.mark.study  # a quarter of a minute
def test_processes_may_create_the_store_together(tmp_path: Path):
    """Without the lock file three of four fail in the migration."""
    script = "import sys; from pathlib import Path; from tracking.store import open_store"
    script += "; sys.stdout.write(open_store(Path(sys.argv[1])).experiment_id)"
    processes = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    answers = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert len(set(answers)) == 1


def test_artifacts_stay_beside_the_store(store_root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch):
    """Started from another folder, as DVC starts experiments."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    figure = Path("figure.txt")
    figure.write_text("figure")
    with open_run(open_store(), "stage/graph/0", parameters={}, tags={}) as run:
        run.artifact(figure)
    stored = list((store_root / "mlartifacts").rglob("figure.txt"))
    assert [path.read_text() for path in stored] == ["figure"]


def test_a_database_without_a_place_for_files_is_refused(store_root: Path, monkeypatch: pytest.MonkeyPatch):
    """Before it is asked for anything: nobody listens there."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql+psycopg://me:secret@127.0.0.1:1/runs")
    with pytest.raises(
        InputError, match=r"names the database 127\.0\.0\.1:1/runs, which keeps no files; set MLFLOW_DEF"
    ):
        open_store(store_root)


def test_what_lies_aside_has_its_children_with_it_and_comes_back_with_them(store_root: Path):
    """Children of children too; other runs stay."""
    store = open_store(store_root)
    with (
        open_run(store, "sweep", parameters={}, tags={}) as top,
        open_run(store, "job", parameters={}, tags={}, parent_id=top.run_id) as job,
        open_run(store, "stage", parameters={}, tags={}, parent_id=job.run_id) as stage,
    ):
        pass
    store.move(job.run_id, store.aside_id)
    assert names(store, store.aside_id) == ["job", "stage"]
    assert names(store, store.experiment_id) == ["sweep"]
    assert store.of(stage.run_id) == store.aside
    store.move(job.run_id, store.experiment_id)
    assert names(store, store.experiment_id) == ["job", "stage", "sweep"]


def names(store: Store, experiment: str) -> list[str]:
    return sorted(run.info.run_name for run in store.client.search_runs([experiment]))


def test_the_parent_of_a_sweep_stays_when_it_fails(store_root: Path):
    """So that the jobs that are done can be seen below it."""
    store = open_store(store_root)
    with (
        pytest.raises(ValueError, match="a job failed"),
        open_run(store, "first by seed", parameters={}, tags={SWEPT_TAG: "seed"}),
    ):
        raise ValueError("a job failed")
    assert names(store, store.experiment_id) == ["first by seed"]
    assert names(store, store.aside_id) == []


def test_a_copied_checkout_shows_its_own_files(store_root: Path, tmp_path_factory: pytest.TempPathFactory):
    """When the first one is gone; what is logged next lies in the copy."""
    figure = tmp_path_factory.mktemp("figure") / "figure.txt"
    figure.write_text("figure")
    with open_run(open_store(store_root), "first", parameters={}, tags={}) as run:
        run.artifact(figure)
    copy = tmp_path_factory.mktemp("copy") / "checkout"
    store_root.rename(copy)
    store = open_store(copy)
    assert Path(store.client.download_artifacts(run.run_id, "figure.txt")).read_text() == "figure"
    with open_run(store, "second", parameters={}, tags={}) as second:
        second.artifact(figure)
    assert len(list(copy.rglob("figure.txt"))) == 2
    store_root.mkdir()


def test_runs_are_shown_as_those_of_trainings(store_root: Path):
    """Else MLflow asks whether the experiment is about a model or about an assistant."""
    store = open_store(store_root)
    for experiment in (store.experiment_id, store.aside_id):
        tags = store.client.get_experiment(experiment).tags
        assert tags["mlflow.experimentKind"] == "custom_model_development"
