"""Checkpoints of a fit, written so that being killed at any moment leaves a whole one."""

import logging
import os
from pathlib import Path
from typing import Any

import torch

from rlflow.atomic_file import written_whole

log = logging.getLogger(__name__)


def write_checkpoint(path: Path, run: str, position: int, state: dict[str, Any]) -> None:
    """Store state, at `position` of the run with fingerprint `run`, in one atomic step."""
    with written_whole(path) as draft, draft.open("wb") as file:
        torch.save({"run": run, "position": position, "state": state}, file)
        file.flush()
        os.fsync(file.fileno())


def read_checkpoint(path: Path, run: str) -> tuple[int, dict[str, Any]] | None:
    """Return (position, state), or None where path holds no checkpoint of this run.

    Only tensors and plain values are loaded: a checkpoint cannot run code.
    """
    if not path.exists():
        return None
    try:
        content = torch.load(path, weights_only=True)
    except Exception as error:  # a broken file raises nearly anything, by which of its bytes is broken
        log.warning("checkpoint %s cannot be read (%s); starting afresh", path, error)
        return None
    if content["run"] != run:
        log.warning("checkpoint %s is of another run (data, settings or seed differ); starting afresh", path)
        return None
    return content["position"], content["state"]
