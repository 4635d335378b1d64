"""A Hydra multirun as one MLflow run with a child run for each job, which is named by what was swept over.

    train_controller by temperature and seed        the parent
        temperature=0.5 seed=0                      a job: `temperature` and `seed` are among its parameters
        temperature=0.5 seed=1

The jobs of every launcher inherit the parent by an environment variable, and learn from its tag what is swept over.
"""

import atexit
import json
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from rlflow.errors import RLFlowError
from tracking.provenance import source_tags
from tracking.run import HEADLINE_TAG, Run, open_run, spelled
from tracking.store import SWEPT_TAG, Store, open_store

PARENT_VARIABLE = "RLFLOW_PARENT_RUN"
told = logging.getLogger("told")


@dataclass(frozen=True)
class Job:
    """A part of something larger: the run that is its parent, and the values of what was swept over, if it is a job."""

    parent_id: str
    swept: Mapping[str, str] = field(default_factory=dict)


def label(swept: Mapping[str, str]) -> str:
    """Name a job by what was swept over: `temperature=0.5 seed=1`; nothing without values."""
    return " ".join(f"{key}={value}" for key, value in swept.items())


def swept_job(overrides: Sequence[str], store: Store) -> Job | None:
    """The job that this process has been started for, by its overrides; None outside a multirun."""
    parent_id = os.environ.get(PARENT_VARIABLE)
    if parent_id is None:
        return None
    swept = store.client.get_run(parent_id).data.tags.get(SWEPT_TAG, "").split()
    values = dict(override.split("=", 1) for override in overrides if "=" in override)
    return Job(parent_id, {key: values[key] for key in values if key in swept})


def place_of(store: Store, job: Job | None, aside: bool) -> Store:
    """The store whose runs lie beside the job's parent, or else aside if asked for."""
    if job is not None:
        return store.of(job.parent_id)
    return store.aside if aside else store


def asked_for(config: DictConfig) -> list[str]:
    """The overrides of a program: those of its sweeper's settings, and those of the command line, which win."""
    drawn = OmegaConf.select(config, "hydra.sweeper.params") or {}
    return [*(f"{name}={values}" for name, values in drawn.items()), *config.hydra.overrides.task]


class SweepParent(Callback):
    """A Hydra callback that opens the parent run before the first job and closes it after the last one."""

    def __init__(self) -> None:
        self._open = ExitStack()

    def __reduce__(self) -> tuple[type["SweepParent"], tuple[()]]:
        """Pickle as a fresh callback: a launcher that sends callbacks to its jobs must not send an open run."""
        return SweepParent, ()

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Create the store, which jobs must not do at the same time, and the parent run."""
        stage, overrides = config.hydra.job.name, config.hydra.overrides.task
        parsed = OverridesParser.create().parse_overrides(asked_for(config))
        last = {override.get_key_element(): override for override in parsed}
        swept = {key: override.get_value_string() for key, override in last.items() if override.is_sweep_override()}
        name = f"{stage} by {' and '.join(swept)}" if swept else stage
        tags = {"stage": stage, SWEPT_TAG: " ".join(swept), **source_tags(Path.cwd(), overrides)}
        run = self._open.enter_context(open_run(open_store(), name, parameters=swept, tags=tags))
        self._open.callback(_tell_of_jobs, run, list(swept))
        os.environ[PARENT_VARIABLE] = run.run_id
        atexit.register(self._fail)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Close the parent run."""
        os.environ.pop(PARENT_VARIABLE, None)
        atexit.unregister(self._fail)
        self._open.close()

    def _fail(self) -> None:
        """Close the parent as failed, since a job has: Hydra ends without a word to callbacks."""
        error = RLFlowError("a job failed")
        self._open.__exit__(RLFlowError, error, None)


def _tell_of_jobs(parent: Run, swept: list[str]) -> None:
    """Describe the sweep by a table of its jobs, in MLflow and on the terminal: their values, and their headlines."""
    of_parent = f"tags.mlflow.parentRunId = '{parent.run_id}'"
    jobs = parent.store.client.search_runs([parent.store.experiment_id], of_parent, order_by=["attributes.run_name"])
    headlines = [json.loads(job.data.tags.get(HEADLINE_TAG, "{}")) for job in jobs]
    figures = list(dict.fromkeys(name for headline in headlines for name in headline))
    rows = [[*swept, *figures], ["---"] * len(swept) + ["--:"] * len(figures)]
    for job, headline in zip(jobs, headlines, strict=True):
        told_figures = [f"{headline[name]:.4g}" if name in headline else "" for name in figures]
        rows.append([job.data.params.get(spelled(key), "") for key in swept] + told_figures)
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    parent.describe(table)
    told.info("%s: %d jobs\n%s", parent.name, len(jobs), table)
