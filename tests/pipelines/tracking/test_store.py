import signal
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path

import pytest
from support.stages import killed_while_running
from tracking.run import open_run
from tracking.store import PROCESS_TAG, close_abandoned_runs, open_store

from rlflow.errors import InputError


def test_killed_run_is_marked_at_the_next_start(store_root: Path):
    process = get_context("spawn").Process(target=killed_while_running, args=(store_root,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    store = open_store(store_root)
    (run,) = store.client.search_runs([store.experiment_id])
    assert run.info.status == "KILLED"
    assert run.data.metrics == {"loss": 1.0}


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
