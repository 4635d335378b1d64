"""The epochs of a fit, each kept in a checkpoint, so that a fit that was killed goes on where it was.

    run_epochs(fit, encoder_epochs + memory_epochs, checkpoint=Path("fit.pt"))

The invariant: a fit that was killed and resumed ends with the weights of one that ran through, which holds if its
`state` is all that its next epoch depends on.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from rlflow.world_model.checkpoint import read_checkpoint, write_checkpoint

log = logging.getLogger(__name__)

OnEpoch = Callable[[int, dict[str, float]], None]
"""Called after every epoch with its number and its metrics."""


class Fit(Protocol):
    """All that a fit carries from epoch to epoch; `run` is a hash of all that it depends on."""

    run: str

    def run_epoch(self, epoch: int) -> dict[str, float]:
        """Run one epoch and return its metrics."""

    def state(self) -> dict[str, Any]:
        """Return what the next epoch depends on: tensors and plain values."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""


def run_epochs(fit: Fit, epochs: int, checkpoint: Path | None = None, on_epoch: OnEpoch | None = None) -> None:
    """Run the epochs that are left; a checkpoint that is of another run is left out of account."""
    found = read_checkpoint(checkpoint, fit.run) if checkpoint is not None else None
    start = 0
    if found is not None:
        start, state = found
        fit.restore(state)
    for epoch in range(start, epochs):
        metrics = fit.run_epoch(epoch)
        log.info("epoch %d: %s", epoch, {name: round(value, 4) for name, value in metrics.items()})
        if checkpoint is not None:
            write_checkpoint(checkpoint, fit.run, epoch + 1, fit.state())
        if on_epoch is not None:
            on_epoch(epoch, metrics)
