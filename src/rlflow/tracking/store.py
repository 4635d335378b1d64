"""The MLflow store: one SQLite file in the main checkout, or whatever MLFLOW_TRACKING_URI names."""

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from mlflow import MlflowClient
from mlflow.entities import ViewType

from rlflow.tracking.provenance import is_gone

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
    with FileLock(root / "mlflow.db.lock"):
        for chatty in ("alembic", "mlflow.store.db.utils"):
            logging.getLogger(chatty).setLevel(logging.WARNING)
        client = MlflowClient(uri)
        experiment = client.get_experiment_by_name(EXPERIMENT)
        identifier = experiment.experiment_id if experiment else _create_experiment(client, uri, root)
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


def _create_experiment(client: MlflowClient, uri: str, root: Path) -> str:
    """Create the experiment: a local store keeps artifacts beside it, a server has its own place for them."""
    local = uri.startswith("sqlite")
    identifier: str = client.create_experiment(
        EXPERIMENT, artifact_location=(root / "mlartifacts").as_uri() if local else None
    )
    return identifier
