"""Runs go to PostgreSQL and an artifact server when two environment variables name them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from mlflow import MlflowClient
from support.servers import artifact_server, postgres, postgres_programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(postgres_programs() is None, reason="PostgreSQL is not installed: make services"),
]

SWEEP = ("python", "pipelines/first.py", "--multirun", "first.size=1,2", "hydra/launcher=joblib")
LOGS_A_FILE = "    stage.run.artifact(folder / 'size.txt')\n    stage.metrics"


def test_a_sweep_goes_to_postgresql_and_an_artifact_server(
    project: Path, tmp_path: Path, migrated_database: Path, command: Callable
) -> None:
    """Two jobs side by side, which SQLite on a network's disk would not stand."""
    script, server = project / "pipelines/first.py", tmp_path / "server"
    script.write_text(script.read_text().replace("    stage.metrics", LOGS_A_FILE))
    server.mkdir()
    shutil.copy(migrated_database, server)
    with postgres() as database, artifact_server(server) as artifacts:
        command(*SWEEP, cwd=project, MLFLOW_TRACKING_URI=database, MLFLOW_DEFAULT_ARTIFACT_ROOT=artifacts)
        client = MlflowClient(database)
        experiment = client.get_experiment_by_name("rlflow")
        runs = client.search_runs([experiment.experiment_id])
        with psycopg.connect(database.replace("+psycopg", "")) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT run_uuid FROM runs")
            stored = {row[0] for row in cursor.fetchall()}

    (parent,) = (run for run in runs if "mlflow.parentRunId" not in run.data.tags)
    children = [run for run in runs if run is not parent]
    assert stored == {run.info.run_id for run in runs}, "the rows are PostgreSQL's own"
    assert [run.info.status for run in runs] == ["FINISHED"] * 3
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {parent.info.run_id}
    assert {path.read_text() for path in (server / "files").rglob("size.txt")} == {"1", "2"}
    assert not (project / "mlartifacts").exists()
    assert not list(project.rglob("mlruns"))
