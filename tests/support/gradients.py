"""What a loss over actions teaches a policy."""

import torch
from torch import nn


def check_gradients(policy: nn.Module, *evaluated: torch.Tensor) -> None:
    """Check that what is evaluated of actions, added up, has finite gradients that reach every parameter."""
    sum(part.sum() for part in evaluated).backward()
    for name, parameter in policy.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), name
