"""Quantities that steps change, read off what a world model knows of the steps, by least squares.

    readout = Readout.fit(features, change, "memory")       features (N, F) and changes (N,) of steps in their order
    readout(features)                                         (N,), within the range of what it was fitted on

A quantity may be known after some steps alone, such as a latency that is measured at every fifth one. Then its change
is that since it was known before, and what the steps between have changed are those shares of it that fit best.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rlflow.errors import InputError
from rlflow.step_reward import Quantity

_RIDGE = 1e-6  # of the features' mean square: what cannot be told apart shares alike


@dataclass(frozen=True, eq=False)
class Readout:
    """Weights (F,) of features, and the range of changes; float32."""

    weights: Tensor
    low: Tensor
    high: Tensor

    @classmethod
    def fit(cls, features: Tensor, change: Tensor, quantity: Quantity) -> Readout:
        """Fit changes (N,) to features (N, F) of steps; NaN where a change is not known before a later step.

        `InputError` if none is known.
        """
        known = ~torch.isnan(change)
        if not known.any():
            how = "with reward=end_to_end" if quantity == "latency" else "again"
            raise InputError(f"dream: the rollouts do not tell what steps save of the {quantity}: collect them {how}")
        stretch = known.cumsum(dim=0) - known.long()
        whole = stretch < known.sum()  # steps after the last that is known say nothing
        steps, target = features.double(), change[known].double()
        total = steps.new_zeros(len(target), steps.shape[1]).index_add(0, stretch[whole], steps[whole])
        square = total.T @ total
        ridge = _RIDGE * square.diagonal().mean().clamp_min(torch.finfo(torch.float64).tiny)
        weights = torch.linalg.solve(square + ridge * torch.eye(len(square), dtype=torch.float64), total.T @ target)
        told = steps @ weights
        return cls(weights.float(), told.min().float(), told.max().float())

    def __call__(self, features: Tensor) -> Tensor:
        """The changes (N,) by steps with features (N, F)."""
        return self.within(features @ self.weights)

    def within(self, change: Tensor) -> Tensor:
        """Keep changes (N,) within what was seen."""
        return change.clamp(self.low, self.high)
