"""Open MLflow's user interface on the project's store, and log the address of its runs, with columns that tell.

MLflow keeps a view that somebody shares as a tag of the experiment, and its address names the tag. This view says which
columns the table of runs has.
"""

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence

from tracking.store import Store, open_store

COLUMNS = {
    "params": ("graph", "method", "seed"),
    "metrics": ("saved_percent", "speedup", "real_percent"),
}
_VIEW = "rlflow"
PORT = 5000
"""Where the user interface listens, unless it is told another port."""

log = logging.getLogger(__name__)


def main(arguments: Sequence[str]) -> None:
    """Log the address of the runs, then become `mlflow ui`."""
    parser = argparse.ArgumentParser(prog="make ui", description=__doc__)
    parser.add_argument("--port", type=int, default=PORT)
    port = parser.parse_args(arguments).port
    store = open_store()
    show_columns(store)
    log.info("Runs: %s", runs_address(store.experiment_id, port))
    log.info("Smoke runs, and those that failed or were killed: %s", runs_address(store.aside_id, port))
    command = [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", store.uri]
    os.execv(sys.executable, [*command, "--port", str(port), "--workers", "1"])


def show_columns(store: Store) -> None:
    """Leave the view in both experiments."""
    view = {"selectedColumns": [f"{kind}.`{name}`" for kind, names in COLUMNS.items() for name in names]}
    for experiment in (store.experiment_id, store.aside_id):
        store.client.set_experiment_tag(experiment, f"mlflow.sharedViewState.{_VIEW}", json.dumps(view))


def runs_address(experiment_id: str, port: int = PORT) -> str:
    """The address of the page of the runs; MLflow's front page shows traces of language models instead."""
    return f"{_experiment(experiment_id, port)}?viewStateShareKey={_VIEW}&workflowType=machine_learning"


def run_address(experiment_id: str, run_id: str, port: int = PORT) -> str:
    """The address of the page of a run."""
    return f"{_experiment(experiment_id, port)}/{run_id}"


def _experiment(experiment_id: str, port: int) -> str:
    return f"http://127.0.0.1:{port}/#/experiments/{experiment_id}/runs"


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main(sys.argv[1:])
