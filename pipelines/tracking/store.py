"""The MLflow store: one SQLite file in the main checkout, or whatever MLFLOW_TRACKING_URI names.

It names a server, which knows where artifacts go (http://host:5000), or a database (postgresql+psycopg://user@host/runs),
beside which MLFLOW_DEFAULT_ARTIFACT_ROOT names a bucket (s3://bucket/runs) or an artifact server
(http://host:5000/api/2.0/mlflow-artifacts/artifacts). MLflow's own programs know both variables.
"""

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from mlflow import MlflowClient
from mlflow.entities import ViewType

from rlflow.errors import InputError
from tracking.provenance import is_gone

EXPERIMENT = "rlflow"
PROCESS_TAG = "rlflow.process"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Store:
    """A client and the one experiment that all runs belong to."""

    uri: str
    client: MlflowClient
    experiment_id: str

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process has a client of its own, since connections to a database are not to be shared."""
        return _reached, (self.uri, self.experiment_id)


def _reached(uri: str, experiment_id: str) -> Store:
    """Return the store as a process reaches it that was given it."""
    return Store(uri, MlflowClient(uri), experiment_id)


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
        experiment = client.get_experiment_by_name(EXPERIMENT)
        identifier = experiment.experiment_id if experiment else client.create_experiment(EXPERIMENT, artifacts)
        store = Store(uri, client, identifier)
        close_abandoned_runs(store)
    return store


def close_abandoned_runs(store: Store) -> list[str]:
    """Mark as KILLED the runs whose process ended without closing them (kill -9, power); returns their ids."""
    running = store.client.search_runs(
        [store.experiment_id], "attributes.status = 'RUNNING'", run_view_type=ViewType.ALL
    )
    tagged = [(run.info.run_id, run.data.tags[PROCESS_TAG]) for run in running if PROCESS_TAG in run.data.tags]
    abandoned = [run_id for run_id, tag in tagged if is_gone(tag)]
    for run_id in abandoned:
        store.client.set_terminated(run_id, status="KILLED")
        log.warning("MLflow run %s was left running by a process that has ended; marked KILLED", run_id)
    return abandoned


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
