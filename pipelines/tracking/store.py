"""The MLflow store: one SQLite file in the main checkout, or whatever MLFLOW_TRACKING_URI names.

Runs belong to one experiment; those that are smoke, have failed or were killed lie aside, in another one. A checkout
may be copied or moved with its store: the addresses of files follow.

MLFLOW_TRACKING_URI names a server, which knows where artifacts go (http://host:5000), or a database
(postgresql+psycopg://user@host/runs), beside which MLFLOW_DEFAULT_ARTIFACT_ROOT names a bucket (s3://bucket/runs) or an
artifact server (http://host:5000/api/2.0/mlflow-artifacts/artifacts). MLflow's own programs know both variables.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock
from mlflow import MlflowClient
from mlflow.entities import ViewType
from sqlalchemy import create_engine, text

from rlflow.errors import InputError
from tracking.provenance import is_gone

EXPERIMENT, ASIDE = "rlflow", "rlflow aside"
PROCESS_TAG = "rlflow.process"
SWEPT_TAG = "swept"
"""A tag of the parent of a sweep: what it goes over."""
_KIND = {"mlflow.experimentKind": "custom_model_development"}  # else MLflow asks whether it is about training
_NOTE = "Smoke runs, and runs that failed or were killed; all others are in the experiment rlflow."
_TAGS = {EXPERIMENT: _KIND, ASIDE: {**_KIND, "mlflow.note.content": _NOTE}}
_MOVE = text("""
    WITH RECURSIVE below(id) AS (
        SELECT :run
        UNION SELECT tags.run_uuid FROM tags JOIN below ON tags.key = 'mlflow.parentRunId' AND tags.value = below.id
    )
    UPDATE runs SET experiment_id = :experiment WHERE run_uuid IN (SELECT id FROM below)
""")
_ADDRESSES = {
    "experiments": "artifact_location",
    "runs": "artifact_uri",
    "logged_models": "artifact_location",
    "model_versions": "storage_location",
}
"""The columns of MLflow's database that say where files are."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Store:
    """A client, the experiment that runs belong to, and that of the runs aside."""

    uri: str
    client: MlflowClient
    experiment_id: str
    aside_id: str

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process has a client of its own, since connections to a database are not to be shared."""
        return _reached, (self.uri, self.experiment_id, self.aside_id)

    @property
    def aside(self) -> "Store":
        """The store whose runs lie aside."""
        return replace(self, experiment_id=self.aside_id)

    def of(self, run_id: str) -> "Store":
        """The store whose runs lie where that run does."""
        return replace(self, experiment_id=self.client.get_run(run_id).info.experiment_id)

    def move(self, run_id: str, experiment_id: str) -> None:
        """Let a run belong to another experiment, with its children and theirs; a server's API has no word for it."""
        if not self.uri.startswith("http"):
            with create_engine(self.uri).begin() as database:
                database.execute(_MOVE, {"run": run_id, "experiment": int(experiment_id)})


def _reached(uri: str, experiment_id: str, aside_id: str) -> Store:
    """Return the store as a process reaches it that was given it."""
    return Store(uri, MlflowClient(uri), experiment_id, aside_id)


def main_root() -> Path:
    """The checkout that keeps the store and the checkpoints; DVC throws away its copies under .dvc/tmp."""
    return Path(os.environ.get("DVC_ROOT", Path.cwd())).resolve()


def open_store(root: Path | None = None) -> Store:
    """The store of `root` (default: the main checkout), created on first use; runs of dead processes end as KILLED.

    The first touch migrates an empty database and is not safe for several processes: a lock file orders them.
    """
    root = root or main_root()
    uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{root / 'mlflow.db'}"
    artifacts = _artifact_location(uri, root)
    with FileLock(root / "mlflow.db.lock"):
        for chatty in ("alembic", "mlflow.store.db.utils", "mlflow.system_metrics"):
            logging.getLogger(chatty).setLevel(logging.WARNING)
        client = MlflowClient(uri)
        store = Store(uri, client, *(_experiment(client, name, artifacts) for name in (EXPERIMENT, ASIDE)))
        if artifacts is not None and uri.startswith("sqlite"):
            _follow(store, artifacts)
        close_abandoned_runs(store)
    return store


def _experiment(client: MlflowClient, name: str, artifacts: str | None) -> str:
    """The number of an experiment, which is created on first use."""
    found = client.get_experiment_by_name(name)
    identifier: str = found.experiment_id if found else client.create_experiment(name, artifacts)
    for tag, value in _TAGS[name].items():
        if found is None or found.tags.get(tag) != value:
            client.set_experiment_tag(identifier, tag, value)
    return identifier


def _follow(store: Store, artifacts: str) -> None:
    """Let all addresses of files begin with `artifacts`, where the place for files has been copied or moved to."""
    before = store.client.get_experiment(store.experiment_id).artifact_location
    if before == artifacts:
        return
    with create_engine(store.uri).begin() as database:
        for table, column in _ADDRESSES.items():
            change = (
                f"UPDATE {table} SET {column} = :now || substr({column}, :rest) WHERE substr({column}, 1, :size) = :was"
            )
            given = {"now": artifacts, "was": before, "size": len(before), "rest": len(before) + 1}
            database.execute(text(change), given)


def close_abandoned_runs(store: Store) -> list[str]:
    """Mark as KILLED the runs whose process ended without closing them (kill -9, power); returns their ids."""
    experiments = [store.experiment_id, store.aside_id]
    running = store.client.search_runs(experiments, "attributes.status = 'RUNNING'", run_view_type=ViewType.ALL)
    tagged = [run for run in running if PROCESS_TAG in run.data.tags]
    abandoned = {run.info.run_id: run.data.tags for run in tagged if is_gone(run.data.tags[PROCESS_TAG])}
    for run_id, tags in abandoned.items():
        store.client.set_terminated(run_id, status="KILLED")
        put_aside(store, run_id, tags)
        log.warning("MLflow run %s was left running by a process that has ended; marked KILLED", run_id)
    return list(abandoned)


def put_aside(store: Store, run_id: str, tags: Mapping[str, str]) -> None:
    """Let a run that has not ended well lie aside; a sweep's parent stays, as its other jobs count."""
    if SWEPT_TAG not in tags:
        store.move(run_id, store.aside_id)


def _artifact_location(uri: str, root: Path) -> str | None:
    """Return the place for artifacts: beside a local store; None if the server has a place of its own.

    Raises InputError for another database if nothing says it: MLflow would scatter them over working folders.
    """
    named = os.environ.get("MLFLOW_DEFAULT_ARTIFACT_ROOT")
    if named or uri.startswith("http"):
        return named
    if uri.startswith("sqlite"):
        return (root / "mlartifacts").as_uri()
    raise InputError(
        f"MLFLOW_TRACKING_URI names the database {uri.split('@')[-1]}, which keeps no files; set "
        "MLFLOW_DEFAULT_ARTIFACT_ROOT to a bucket or an artifact server: s3://bucket/runs, "
        "http://host:5000/api/2.0/mlflow-artifacts/artifacts"
    )
