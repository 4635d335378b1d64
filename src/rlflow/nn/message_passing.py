"""Message passing on sparse directed graphs (Battaglia et al. 2018, graph networks)."""

import torch
from torch import Tensor, nn

from rlflow.nn.mlp import mlp


def scatter_sum(values: Tensor, index: Tensor, size: int) -> Tensor:
    """Sum values (M, D) into (size, D) at rows index (M,) int64."""
    return values.new_zeros(size, values.shape[1]).index_add_(0, index, values)


class MessagePassing(nn.Module):
    """One residual block: each node receives the sum over its senders and, separately, the sum over its receivers.

    Sums, not means: the number of equal neighbours is information (Xu et al. 2019).
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.from_senders = nn.Linear(width, width)
        self.from_receivers = nn.Linear(width, width)
        self.update = mlp([3 * width, width, width])

    def forward(self, nodes: Tensor, incoming: Tensor, outgoing: Tensor) -> Tensor:
        """Nodes (N, D) -> (N, D).

        incoming (2, E): row 0 the node that is updated, row 1 its sender. outgoing (2, E'): row 0 the node that is
        updated, row 1 its receiver. In a plain graph each is the other with its rows exchanged.
        """
        normed = self.norm(nodes)
        size = nodes.shape[0]
        senders = scatter_sum(self.from_senders(normed)[incoming[1]], incoming[0], size)
        receivers = scatter_sum(self.from_receivers(normed)[outgoing[1]], outgoing[0], size)
        change: Tensor = self.update(torch.cat([normed, senders, receivers], dim=-1))
        return nodes + change
