"""Layers of PyTorch in a network that is written as an ONNX model: what V and C share."""

from __future__ import annotations

import numpy as np
from torch import nn

from rlflow.onnx_io.network import Network

_LAST = np.array([1], np.int64)


class LayersNetwork(Network):
    """A `Network` that knows layers."""

    def layers(self, layer: nn.Module, rows: str) -> str:
        """Write a layer, or several one after another. `TypeError` for one of another kind than policies have."""
        if isinstance(layer, nn.Sequential):
            for part in layer:
                rows = self.layers(part, rows)
            return rows
        if isinstance(layer, nn.Linear):
            return self.add("Gemm", rows, *weights_of(layer), transB=1)
        if isinstance(layer, nn.SiLU):
            return self.add("Mul", rows, self.add("Sigmoid", rows))
        if isinstance(layer, nn.Tanh):
            return self.add("Tanh", rows)
        if isinstance(layer, nn.LayerNorm):
            return self.add("LayerNormalization", rows, *weights_of(layer), epsilon=layer.eps)
        raise TypeError(f"a layer of {type(layer).__name__} cannot be written")

    def column(self, values: str) -> str:
        """(N,) -> (N, 1)."""
        return self.add("Unsqueeze", values, _LAST)


def weights_of(layer: nn.Module) -> list[np.ndarray]:
    """Return the weight of a layer, and its bias if it has one."""
    return [weight.detach().numpy() for weight in layer.parameters()]
