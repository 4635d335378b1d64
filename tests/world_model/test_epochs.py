"""Epochs run in turn, and from where a fit was killed."""

from pathlib import Path
from typing import Any

import pytest

from rlflow.world_model.epochs import run_epochs


class Counting:
    """A fit whose state is the sum of the epochs that it has run; it is killed before one of them."""

    def __init__(self, run: str = "one", killed_at: int | None = None) -> None:
        self.run, self.total, self.killed_at = run, 0, killed_at
        self.epochs: list[int] = []

    def run_epoch(self, epoch: int) -> dict[str, float]:
        if epoch == self.killed_at:
            raise KeyboardInterrupt
        self.epochs.append(epoch)
        self.total += epoch
        return {"total": float(self.total)}

    def state(self) -> dict[str, Any]:
        return {"total": self.total}

    def restore(self, state: dict[str, Any]) -> None:
        self.total = state["total"]


def test_a_fit_that_was_killed_goes_on_where_it_was(tmp_path: Path):
    whole, killed, resumed = Counting(), Counting(killed_at=3), Counting()
    run_epochs(whole, 5)
    with pytest.raises(KeyboardInterrupt):
        run_epochs(killed, 5, tmp_path / "fit.pt")
    told: list[tuple[int, dict[str, float]]] = []
    run_epochs(resumed, 5, tmp_path / "fit.pt", lambda epoch, metrics: told.append((epoch, metrics)))
    assert (killed.epochs, resumed.epochs) == ([0, 1, 2], [3, 4])
    assert resumed.total == whole.total == 10
    assert told == [(3, {"total": 6.0}), (4, {"total": 10.0})]
