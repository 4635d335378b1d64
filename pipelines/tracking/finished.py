"""Work of a sweep that has ended well, told by a file in the folder of its job, so that none is done twice.

    if (done := finished(folder, "train_controller", fingerprint, job, store)) is not None:
        return done.figure
    ...
    finish(folder, "train_controller", Finished(fingerprint, run.run_id, figure))

A sweep that is started again, or a wider one, takes over the runs of such work as they are. The invariant: work counts
as done for the same settings, inputs and code, and as long as MLflow has its run.
"""

import json
import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from mlflow.entities import Param
from mlflow.exceptions import MlflowException

from rlflow.atomic_file import written_whole
from tracking.run import spelled
from tracking.store import SWEPT_TAG, Store
from tracking.sweep import Job, label

_PARENT_TAG = "mlflow.parentRunId"

told = logging.getLogger("told")


@dataclass(frozen=True)
class Finished:
    """Work that is done, by a fingerprint of all that it depends on; its run, and the figure that it returned."""

    fingerprint: str
    run_id: str
    figure: float | None


def finish(folder: Path, name: str, finished: Finished) -> None:
    """Leave a note that this work is done, in the folder of its outputs."""
    with written_whole(_note(folder, name)) as draft:
        draft.write_text(json.dumps(asdict(finished)) + "\n")


def finished(folder: Path, name: str, fingerprint: str, job: Job, store: Store) -> Finished | None:
    """The work of that name and fingerprint, if it is done: its run is then one of this job's sweep; else None."""
    note = _note(folder, name)
    if not note.is_file():
        return None
    done = Finished(**json.loads(note.read_text()))
    if done.fingerprint != fingerprint or not _taken_over(done.run_id, job, store):
        return None
    told.info("%s: done before, in %s", f"{name} {label(job.swept)}".strip(), os.path.relpath(folder))
    return done


def _taken_over(run_id: str, job: Job, store: Store) -> bool:
    """Make a run a child of the job's parent, by the name that it has there; False if MLflow has lost the run."""
    try:
        before = store.client.get_run(run_id).data.tags.get(_PARENT_TAG)
        store.client.set_tag(run_id, _PARENT_TAG, job.parent_id)
        store.move(run_id, store.of(job.parent_id).experiment_id)
        store.client.log_batch(run_id, params=[Param(spelled(key), value) for key, value in job.swept.items()])
        if job.swept:
            store.client.update_run(run_id, name=label(job.swept))
    except MlflowException:
        return False
    if before is not None:
        _delete_if_empty(before, store)
    return True


def _delete_if_empty(parent_id: str, store: Store) -> None:
    """Delete the parent of a sweep that has ended and has no job any more, but those that lie aside."""
    parent = store.client.get_run(parent_id)
    of_parent = f"tags.`{_PARENT_TAG}` = '{parent_id}'"
    is_sweep = SWEPT_TAG in parent.data.tags and parent.info.status != "RUNNING"
    if is_sweep and not store.client.search_runs([parent.info.experiment_id], of_parent, max_results=1):
        store.client.delete_run(parent_id)


def _note(folder: Path, name: str) -> Path:
    return folder / ".finished" / f"{name}.json"
