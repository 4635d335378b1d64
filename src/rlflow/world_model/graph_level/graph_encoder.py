"""V: a graph neural network that encodes a computation graph into a latent z (paper section 3.3).

The layers of a transformer repeat, and the graphs of a rollout differ in few places. So nodes that message passing
cannot tell apart are merged first (`quotient`): in a chain of equal layers, only those near an end are classes of their
own. Each class is then worked on once and counted as often as it occurs.

The invariant: z is the same, up to rounding, as if every node of every graph had been worked on by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from rlflow.nn.message_passing import MessagePassing, scatter_sum
from rlflow.representation.graph_arrays import GraphArrays


@dataclass(frozen=True)
class GraphBatch:
    """C node classes that stand for all nodes of B graphs.

    op (C,) int64; features (C, F). incoming, outgoing (2, E): row 0 the class that is updated, row 1 the class of its
    sender (receiver). graph, node (M,) int64 and count (M,): `graph` has `count` nodes of class `node`.
    """

    op: Tensor
    features: Tensor
    incoming: Tensor
    outgoing: Tensor
    graph: Tensor
    node: Tensor
    count: Tensor
    num_graphs: int


def quotient(graphs: Sequence[GraphArrays], rounds: int) -> GraphBatch:
    """The disjoint union of graphs, with the nodes merged that `rounds` rounds of message passing cannot tell apart.

    Exact: a node's state after l rounds depends on its l-hop neighbourhood alone (Weisfeiler and Leman 1968), so one
    representative per class is enough; its neighbours stand for the classes they belong to. Colours are 64-bit hashes:
    two of a million classes meet with a probability below 1e-7.
    """
    # The union: nodes end to end, edges shifted by the nodes of the graphs before.
    sizes = np.array([graph.num_nodes for graph in graphs])
    offsets = np.repeat(np.cumsum(sizes) - sizes, [len(graph.edges) for graph in graphs])
    op = np.concatenate([graph.op for graph in graphs])
    features = np.concatenate([graph.features for graph in graphs])
    sender, receiver = (np.concatenate([graph.edges for graph in graphs]) + offsets[:, None]).T

    # Classes of nodes of one colour; only the edges of each class's representative are kept.
    colours = _colours(op, features, sender, receiver, rounds)
    _, representative, node_class = np.unique(colours, return_index=True, return_inverse=True)
    chosen = np.zeros(len(op), dtype=bool)
    chosen[representative] = True
    into_chosen, out_of_chosen = chosen[receiver], chosen[sender]

    # How often each class occurs in each graph; a pair (graph, class) is coded as one number.
    membership = np.repeat(np.arange(len(graphs)), sizes) * len(representative) + node_class
    pairs, count = np.unique(membership, return_counts=True)
    return GraphBatch(
        op=torch.from_numpy(op[representative]),
        features=torch.from_numpy(features[representative]),
        incoming=torch.from_numpy(node_class[np.stack([receiver[into_chosen], sender[into_chosen]])]),
        outgoing=torch.from_numpy(node_class[np.stack([sender[out_of_chosen], receiver[out_of_chosen]])]),
        graph=torch.from_numpy(pairs // len(representative)),
        node=torch.from_numpy(pairs % len(representative)),
        count=torch.from_numpy(count.astype(np.float32)),
        num_graphs=len(graphs),
    )


def _colours(op: np.ndarray, features: np.ndarray, sender: np.ndarray, receiver: np.ndarray, rounds: int) -> np.ndarray:
    """Colour refinement: (N,) uint64, equal for nodes with equal neighbourhoods of `rounds` hops."""
    bits = np.concatenate([op[:, None].astype(np.uint64), features.view(np.uint32).astype(np.uint64)], axis=1)
    column = _mix(np.arange(1, bits.shape[1] + 1, dtype=np.uint64))
    colour = _mix(_mix(bits + column).sum(axis=1, dtype=np.uint64))

    # A sum of mixed colours is a hash of the multiset of neighbours; the complement tells receivers from senders.
    for _ in range(rounds):
        senders, receivers = np.zeros_like(colour), np.zeros_like(colour)
        np.add.at(senders, receiver, _mix(colour)[sender])
        np.add.at(receivers, sender, _mix(~colour)[receiver])
        colour = _mix(colour + _mix(senders + np.uint64(1)) + _mix(receivers + np.uint64(2)))
    return colour


def _mix(value: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele et al. 2014): a bijection whose bits depend on all bits of value."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


class GraphEncoder(nn.Module):
    """Embedding of the operators, rounds of message passing, sum over the nodes, standardised readout.

    The sum keeps how often each neighbourhood occurs, which is what match counts are made of. Batch
    normalisation without scale gives every dimension of z unit variance over the visited graphs, so that no
    dimension can collapse and a change of z has a scale.
    """

    feature_mean: Tensor
    feature_std: Tensor
    node_scale: Tensor

    def __init__(self, vocabulary_size: int, num_features: int, width: int, layers: int, latent: int) -> None:
        super().__init__()
        self.operator = nn.Embedding(vocabulary_size, width)
        self.features = nn.Linear(num_features, width)
        self.blocks = nn.ModuleList([MessagePassing(width) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.readout = nn.Linear(width, latent)
        self.standardise = nn.BatchNorm1d(latent, eps=1e-8, affine=False)
        self.register_buffer("feature_mean", torch.zeros(num_features))
        self.register_buffer("feature_std", torch.ones(num_features))
        self.register_buffer("node_scale", torch.ones(()))

    def set_scale(self, graphs: Sequence[GraphArrays]) -> None:
        """Take the scale of the inputs from the graphs that V will be fitted on."""
        features = torch.from_numpy(np.concatenate([graph.features for graph in graphs]))
        self.feature_mean.copy_(features.mean(dim=0))
        self.feature_std.copy_(features.std(dim=0, correction=0).clamp_min(1e-6))
        self.node_scale.fill_(np.sqrt(np.mean([graph.num_nodes for graph in graphs])))

    def forward(self, batch: GraphBatch) -> Tensor:
        """Graphs -> z (B, Z)."""
        return self.standardise(self.pool(batch))  # type: ignore[no-any-return]

    def pool(self, batch: GraphBatch) -> Tensor:
        """Graphs -> z before it is standardised (B, Z)."""
        scaled = (batch.features - self.feature_mean) / self.feature_std
        nodes = self.operator(batch.op) + self.features(scaled)
        for block in self.blocks:
            nodes = block(nodes, batch.incoming, batch.outgoing)
        outputs = self.readout(self.norm(nodes))
        total = scatter_sum(outputs[batch.node] * batch.count[:, None], batch.graph, batch.num_graphs)
        return total / self.node_scale

    @torch.no_grad()
    def encode(self, graphs: Sequence[GraphArrays]) -> Tensor:
        """Distinct graphs -> z (B, Z), without gradient."""
        return self._standardised(self.pool_all(graphs))

    @torch.no_grad()
    def standardise_over(self, graphs: Sequence[GraphArrays]) -> Tensor:
        """Replace the running mean and variance of z by the exact ones over graphs; returns their z (B, Z)."""
        pooled = self.pool_all(graphs)
        assert self.standardise.running_mean is not None
        assert self.standardise.running_var is not None
        self.standardise.running_mean.copy_(pooled.mean(dim=0))
        self.standardise.running_var.copy_(pooled.var(dim=0, correction=0))
        return self._standardised(pooled)

    def _standardised(self, pooled: Tensor) -> Tensor:
        mean, variance = self.standardise.running_mean, self.standardise.running_var
        assert mean is not None
        assert variance is not None
        return (pooled - mean) / torch.sqrt(variance + self.standardise.eps)

    def pool_all(self, graphs: Sequence[GraphArrays], batch_size: int = 512) -> Tensor:
        """Graphs, in batches -> z before it is standardised (B, Z).

        The larger a batch is, the more graphs share their classes: 512 have hardly twice as many as 64.
        """
        parts = [graphs[start : start + batch_size] for start in range(0, len(graphs), batch_size)]
        return torch.cat([self.pool(quotient(part, len(self.blocks))) for part in parts])
