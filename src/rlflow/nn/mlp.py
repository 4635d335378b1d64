"""Multi-layer perceptrons."""

from collections.abc import Sequence
from itertools import pairwise

from torch import nn


def mlp(sizes: Sequence[int], activation: type[nn.Module] = nn.SiLU) -> nn.Sequential:
    """Linear layers of the given sizes, (..., sizes[0]) -> (..., sizes[-1]), activations between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers[:-1])
