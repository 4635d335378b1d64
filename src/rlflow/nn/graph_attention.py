"""Attention on sparse directed graphs (Velickovic et al. 2018, GAT), with kinds of edges.

Messages (E, 2) say which node sends and which one hears. There are far fewer kinds of edges than edges, so what is said
of a kind is worked out once. A node hears from its neighbours and from itself, so that one without neighbours keeps
what it has.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from rlflow.nn.message_passing import scatter_sum

_SLOPE = 0.2  # of LeakyReLU, as in the paper


class EdgeAndNodeUpdate(nn.Module):
    """The first update: edges by themselves, then each node by the sum of its edges and by itself (X-RLflow)."""

    def __init__(self, node_width: int, edge_width: int, width: int) -> None:
        super().__init__()
        self.edge = nn.Sequential(nn.Linear(edge_width, width), nn.SiLU())
        self.node = nn.Sequential(nn.Linear(node_width + width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, nodes: Tensor, kinds: Tensor, kind: Tensor, hearer: Tensor) -> tuple[Tensor, Tensor]:
        """Nodes (N, F) and kinds of edges (T, D) -> (N, W) and (T, W); each edge has a `kind` and a `hearer` (E,)."""
        updated = self.edge(kinds)
        heard = scatter_sum(updated[kind], hearer, len(nodes))
        return self.node(torch.cat([nodes, heard], dim=-1)), updated


class GraphAttention(nn.Module):
    """One residual block of attention with several heads over a node and those it hears from.

    What a kind of edge says counts in the scores: direction, operand, shape. The width must be divisible by the number
    of heads.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.value = nn.Linear(width, width)
        self.sends, self.hears, self.along = (nn.Linear(width, heads, bias=False) for _ in range(3))
        self.update = nn.Linear(width, width)

    def forward(self, nodes: Tensor, kinds: Tensor, kind: Tensor, messages: Tensor) -> Tensor:
        """Nodes (N, W), kinds of edges (T, W), the kind (E,) of each of the messages (E, 2) -> (N, W)."""
        sender, hearer = messages.unbind(dim=1)
        value = self.value(self.norm(nodes))
        sends, hears = self.sends(value), self.hears(value)
        scores = functional.leaky_relu(sends[sender] + hears[hearer] + self.along(kinds)[kind], _SLOPE)
        own_scores = functional.leaky_relu(sends + hears, _SLOPE)
        weight, own_weight = neighbour_softmax(scores, own_scores, hearer)

        of_heads = value.unflatten(-1, (self.heads, -1))
        heard = own_weight[..., None] * of_heads
        heard = heard.index_add(0, hearer, weight[..., None] * of_heads[sender])
        change: Tensor = self.update(functional.silu(heard.flatten(-2)))
        return nodes + change


def neighbour_softmax(scores: Tensor, own_scores: Tensor, hearer: Tensor) -> tuple[Tensor, Tensor]:
    """Softmax over the messages that each node hears and its own: scores (E, H) and (N, H) -> weights of these shapes.

    hearer (E,) int64: which node hears each message.
    """
    with torch.no_grad():  # any number may be subtracted of all scores of a node
        index = hearer[:, None].expand_as(scores)
        largest = own_scores.scatter_reduce(0, index, scores, "amax", include_self=True)
    exponential, own = (scores - largest[hearer]).exp(), (own_scores - largest).exp()
    total = own.index_add(0, hearer, exponential)
    return exponential / total[hearer], own / total
