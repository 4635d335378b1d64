"""Runs go to PostgreSQL and an artifact server when two environment variables name them."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from support.servers import artifact_server, postgres, postgres_programs
from tracking.run import open_run
from tracking.store import Store, open_store

pytestmark = [
    pytest.mark.skipif(postgres_programs() is None, reason="PostgreSQL is not installed: make services"),
]


@pytest.mark.slow
def test_runs_go_to_postgresql_and_an_artifact_server(
    tmp_path: Path, migrated_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two jobs of a parent side by side, which SQLite on a network's disk would not stand."""
    server, figure = tmp_path / "server", tmp_path / "size.txt"
    server.mkdir()
    figure.write_text("3")
    shutil.copy(migrated_database, server)

    with postgres() as database, artifact_server(server) as artifacts, ThreadPoolExecutor(2) as jobs:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", database)
        monkeypatch.setenv("MLFLOW_DEFAULT_ARTIFACT_ROOT", artifacts)
        store = open_store(tmp_path)
        with open_run(store, "first/sweep", parameters={}, tags={}) as parent:
            stores = [store, open_store(tmp_path)]
            children = list(jobs.map(lambda own: _job(own, parent.run_id, figure), stores))
        runs = store.client.search_runs([store.experiment_id])
        with psycopg.connect(database.replace("+psycopg", "")) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT run_uuid FROM runs")
            stored = {row[0] for row in cursor.fetchall()}

    assert stores[0].experiment_id == stores[1].experiment_id
    assert stored == {run.info.run_id for run in runs} == {parent.run_id, *children}, "the rows are PostgreSQL's own"
    assert [run.info.status for run in runs] == ["FINISHED"] * 3
    assert [path.read_text() for path in (server / "files").rglob("size.txt")] == ["3", "3"]
    assert not [path for name in ("mlruns", "mlartifacts") for path in tmp_path.rglob(name)]


def _job(store: Store, parent_id: str, figure: Path) -> str:
    """Log a figure and a file; return the number of the run."""
    with open_run(store, "first", parameters={}, tags={}, parent_id=parent_id) as run:
        run.log(0, {"size": 3.0})
        run.artifact(figure)
    return run.run_id
