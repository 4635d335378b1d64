"""A run in MLflow: `log` for figures that change by step, `artifact` for files. No more of MLflow is used elsewhere.

    with open_run(store, "fit_world_model/bert/0", parameters=settings, tags=tags) as run:
        run.read_files({"data/rollouts": Path("data/rollouts")})
        run.log(step, {"loss": 0.1})
        run.describe("What a reader of the runs table wants to know, in Markdown.")

Beside what is logged, a run without a parent tells what it takes of the machine, every ten seconds: processor, memory,
disk, network. `MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING=false` and `MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL` are MLflow's.
"""

import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlflow.entities import Metric, Param
from mlflow.environment_variables import MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING
from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

from tracking.data_set import data_sets
from tracking.provenance import process_tag
from tracking.store import PROCESS_TAG, Store, put_aside

HEADLINE_TAG = "rlflow.headline"
FLUSH_SIZE = 500  # metrics of one request; the store takes 1,000
FLUSH_INTERVAL_S = 5.0


class Run:
    """An open MLflow run, which buffers its metrics: one request costs more than fifty metrics."""

    def __init__(self, store: Store, run_id: str, name: str):
        self.store, self.run_id, self.name = store, run_id, name
        self._buffer: list[Metric] = []
        self._flushed_at = time.monotonic()
        self._headline: dict[str, float] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process that is given the run logs to it through a client of its own."""
        return Run, (self.store, self.run_id, self.name)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Record `metrics` at `step`; a name that MLflow refuses is spelled with underscores."""
        now = int(time.time() * 1000)
        self._buffer += [Metric(spelled(name), float(value), now, step) for name, value in metrics.items()]
        if len(self._buffer) >= FLUSH_SIZE or time.monotonic() - self._flushed_at > FLUSH_INTERVAL_S:
            self.flush()

    def head(self, figures: Mapping[str, float]) -> None:
        """Record figures that have no steps as the run's headline, which a table of runs shows beside others."""
        self.log(0, figures)
        self._headline |= {spelled(name): value for name, value in figures.items()}
        self.store.client.set_tag(self.run_id, HEADLINE_TAG, json.dumps(self._headline))

    def artifact(self, path: Path) -> None:
        """Copy a file, or a folder's content, to the run."""
        if path.is_dir():
            self.store.client.log_artifacts(self.run_id, str(path), path.name)
        else:
            self.store.client.log_artifact(self.run_id, str(path))

    def write(self, name: str, text: str) -> None:
        """Give the run a file of that name with this text."""
        self.store.client.log_text(self.run_id, text, name)

    def artifacts(self) -> set[str]:
        """The names of the files and folders that the run has."""
        return {file.path for file in self.store.client.list_artifacts(self.run_id)}

    def read_files(self, files: Mapping[str, Path]) -> None:
        """Tell MLflow which files and folders the run has read, and what they are called: it shows them as inputs."""
        self.store.client.log_inputs(self.run_id, datasets=data_sets(files))

    def describe(self, markdown: str) -> None:
        """Set the text at the top of the run's page."""
        self.store.client.set_tag(self.run_id, "mlflow.note.content", markdown)

    def flush(self) -> None:
        """Send the metrics that `log` has buffered."""
        for start in range(0, len(self._buffer), FLUSH_SIZE):
            self.store.client.log_batch(self.run_id, metrics=self._buffer[start : start + FLUSH_SIZE])
        self._buffer, self._flushed_at = [], time.monotonic()


@contextmanager
def open_run(
    store: Store,
    name: str,
    *,
    parameters: Mapping[str, Any],
    tags: Mapping[str, str],
    parent_id: str | None = None,
) -> Iterator[Run]:
    """Open a run and close it at the end: as FINISHED, as FAILED after an error, as KILLED when interrupted.

    parameters: nested; MLflow shows them as `section.key`.
    """
    parent = {"mlflow.parentRunId": parent_id} if parent_id else {}
    created = store.client.create_run(
        store.experiment_id, tags={**tags, **parent, PROCESS_TAG: process_tag()}, run_name=name
    )
    run = Run(store, created.info.run_id, name)
    status = "FAILED"
    try:
        entries = [Param(spelled(key), str(value)) for key, value in flatten(parameters).items()]
        store.client.log_batch(run.run_id, params=entries)
        with _watched(run, is_child=parent_id is not None):
            yield run
        status = "FINISHED"
    except KeyboardInterrupt:
        status = "KILLED"
        raise
    finally:
        run.flush()
        store.client.set_terminated(run.run_id, status=status)
        if status != "FINISHED":
            put_aside(store, run.run_id, tags)


@contextmanager
def _watched(run: Run, is_child: bool) -> Iterator[None]:
    """Log what the machine does meanwhile. Children are left out: their parent's process tells of the same machine."""
    is_wanted = MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING.get() or not MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING.is_set()
    if is_child or not is_wanted:
        yield
        return
    monitor = SystemMetricsMonitor(run.run_id, tracking_uri=run.store.uri)
    monitor.start()
    try:
        yield
    finally:
        monitor.finish()


@contextmanager
def open_child(parent: Run, name: str, *, parameters: Mapping[str, Any]) -> Iterator[Run]:
    """Open a run below `parent`, of the same stage."""
    tags = {"stage": parent.name.split("/")[0]}
    with open_run(parent.store, name, parameters=parameters, tags=tags, parent_id=parent.run_id) as child:
        yield child


def flatten(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested mappings: {"a": {"b": 1}} -> {"a.b": 1}. Lists are leaves; infinities and NaN are kept."""
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def numbers(nested: Mapping[str, Any]) -> dict[str, float]:
    """The finite numbers among the leaves of `nested`, with `/` between levels: MLflow groups charts by it."""
    return {
        key.replace(".", "/"): float(value)
        for key, value in flatten(nested).items()
        if isinstance(value, int | float) and math.isfinite(value)
    }


def spelled(name: str) -> str:
    """The name of a metric or a parameter as MLflow takes it: `%` is a word, what it refuses else an underscore."""
    return re.sub(r"[^\w\-. :/]", "_", name.replace("%", "percent"))
