"""One gradient step under a decaying learning rate."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

DECAY_POWER = 2  # paper section 4.7


def polynomial_decay(progress: float) -> float:
    """Factor of the learning rate at progress 0 .. 1 of the run."""
    return (1.0 - progress) ** DECAY_POWER


def descend(
    loss: Tensor,
    optimiser: torch.optim.Optimizer,
    parameters: Iterable[nn.Parameter],
    learning_rate: float,
    progress: float,
    max_gradient_norm: float,
) -> None:
    """Clip the gradient of loss and step at the decayed rate."""
    for group in optimiser.param_groups:
        group["lr"] = learning_rate * polynomial_decay(progress)
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(parameters, max_gradient_norm)
    optimiser.step()
