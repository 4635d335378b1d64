"""The epochs of a fit, each kept in a checkpoint, so that a fit that was killed goes on where it was.

    run_epochs(fit, encoder_epochs + memory_epochs, checkpoint=Path("fit.pt"))

The invariant: a fit that was killed and resumed ends with the weights of one that ran through, which holds if its
`state` is all that its next epoch depends on.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

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


class Part(Protocol):
    """The fit of one network of two."""

    @property
    def optimiser(self) -> torch.optim.Optimizer:
        """Return the optimiser of the weights."""

    def run_epoch(self, epoch: int, generator: torch.Generator) -> dict[str, float]:
        """Run one epoch and return its metrics."""


class TwoPartFit(ABC):
    """A `Fit` of V for some epochs, and then, with V frozen, of M.

    heads: what is fitted with V and is no part of the model.
    """

    def __init__(self, model: nn.Module, encoder: Part, heads: nn.Module, *, encoder_epochs: int, seed: int) -> None:
        self._model, self._encoder, self._heads, self._encoder_epochs = model, encoder, heads, encoder_epochs
        self._memory: Part | None = None
        self._generator = torch.Generator().manual_seed(seed)

    @abstractmethod
    def memory_part(self) -> Part:
        """Freeze V and return the fit of M on what V reads."""

    def turn_to_memory(self) -> Part:
        """Return the fit of M; V is frozen the first time that this is called."""
        if self._memory is None:
            self._memory = self.memory_part()
        return self._memory

    def run_epoch(self, epoch: int) -> dict[str, float]:
        """Run one epoch of V or of M, whichever is due."""
        if epoch < self._encoder_epochs:
            return self._encoder.run_epoch(epoch, self._generator)
        return self.turn_to_memory().run_epoch(epoch - self._encoder_epochs, self._generator)

    def state(self) -> dict[str, Any]:
        """Return the weights, and the state of the optimisers and of the generator."""
        return {
            "model": self._model.state_dict(),
            "heads": self._heads.state_dict(),
            "encoder_optimiser": self._encoder.optimiser.state_dict(),
            "memory_optimiser": self._memory.optimiser.state_dict() if self._memory else None,
            "generator": self._generator.get_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self._model.load_state_dict(state["model"])
        self._heads.load_state_dict(state["heads"])
        self._encoder.optimiser.load_state_dict(state["encoder_optimiser"])
        if state["memory_optimiser"] is not None:
            self.turn_to_memory().optimiser.load_state_dict(state["memory_optimiser"])
            self._model.load_state_dict(state["model"])  # the turn to M may set M's tables afresh
        self._generator.set_state(state["generator"])


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
