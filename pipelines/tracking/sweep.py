"""A Hydra multirun as one MLflow run with a child run for each job."""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from tracking.composition import graph_names
from tracking.provenance import source_tags
from tracking.run import open_run
from tracking.store import open_store

PARENT_VARIABLE = "RLFLOW_PARENT_RUN"  # inherited by the jobs of every launcher


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
        name = f"{stage}/{'+'.join(graph_names(config))}/sweep"
        tags = {"stage": stage, **source_tags(Path.cwd(), overrides)}
        parameters = {"sweep": " ".join(overrides)}
        run = self._open.enter_context(open_run(open_store(), name, parameters=parameters, tags=tags))
        os.environ[PARENT_VARIABLE] = run.run_id

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Close the parent run."""
        os.environ.pop(PARENT_VARIABLE, None)
        self._open.close()
