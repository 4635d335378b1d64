"""Open MLflow's user interface on the project's store, and log the address of its runs."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from tracking.store import open_store

log = logging.getLogger(__name__)


def main(arguments: Sequence[str]) -> None:
    """Log the address of the runs, then become `mlflow ui`."""
    parser = argparse.ArgumentParser(prog="make ui", description=__doc__)
    parser.add_argument("--port", type=int, default=5000)
    port = parser.parse_args(arguments).port
    store = open_store()
    log.info("Runs: %s", runs_address(store.experiment_id, port))
    command = [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", store.uri]
    os.execv(sys.executable, [*command, "--port", str(port), "--workers", "1"])


def runs_address(experiment_id: str, port: int) -> str:
    """The address of the page of the runs; MLflow's front page shows traces of language models instead."""
    return f"http://127.0.0.1:{port}/#/experiments/{experiment_id}/runs"


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main(sys.argv[1:])
