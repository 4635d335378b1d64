"""What an exporter is given: a torch module with seeded random weights, and an example of its inputs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

SEED = 0
_SPREAD = 0.1

OpenAxes = Mapping[str, Mapping[int, str]]
"""Of inputs by name: the axes that may have another size, and what their sizes are called."""


@dataclass(frozen=True)
class Architecture:
    """`make` gives a module that takes tensors and returns tensors; `inputs` are examples by name, in its order."""

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[], dict[str, Tensor]]
    open_axes: OpenAxes = field(default_factory=dict)

    def build(self) -> tuple[nn.Module, dict[str, Tensor]]:
        """The same for every call. No parameter is left at a value (0, 1) that would hide a mistake."""
        torch.manual_seed(SEED)
        module = self.make().eval()
        for parameter in module.parameters():
            if parameter.ndim == 1:
                parameter.data += _SPREAD * torch.randn_like(parameter)
        for statistics in module.modules():
            if isinstance(statistics, nn.modules.batchnorm._BatchNorm):
                statistics.running_mean.normal_(0, _SPREAD)
                statistics.running_var.uniform_(1 - _SPREAD, 1 + _SPREAD)
        return module, self.inputs()


class Positional(nn.Module):
    """A model of keyword arguments and nested results as a module of tensors, which is what exporters take."""

    def __init__(self, model: nn.Module, names: tuple[str, ...], **fixed: Any) -> None:
        super().__init__()
        self.model = model
        self.names = names
        self.fixed = fixed

    def forward(self, *arguments: Tensor) -> tuple[Tensor, ...]:
        return _flat(self.model(**dict(zip(self.names, arguments, strict=True)), **self.fixed))


def _flat(result: Any) -> tuple[Tensor, ...]:
    if isinstance(result, Tensor):
        return (result,)
    parts = result.values() if isinstance(result, dict) else result if isinstance(result, list | tuple) else ()
    return tuple(tensor for part in parts for tensor in _flat(part))
