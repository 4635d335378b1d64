"""A graph as arrays, the form that the graph encoder reads."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from rlflow.errors import GraphError
from rlflow.representation.packing import Along


@dataclass(frozen=True)
class GraphArrays:
    """One graph of N nodes and E edges.

    op: (N,) int64, index among the operators of a `Vocabulary`, 0 is padding (never a node).
    features: (N, F) float32, a column for each of its features. edges: (E, 2) int64, sender and receiver.

    Features are the same wherever a subgraph stands (no depth, no position), so that the encoder can share its work
    between repeated layers and between the graphs of a rollout. `GraphError` if the arrays do not fit together.
    """

    op: Annotated[np.ndarray, Along("nodes")]
    features: Annotated[np.ndarray, Along("nodes")]
    edges: Annotated[np.ndarray, Along("edge_counts")]

    def __post_init__(self) -> None:
        nodes = len(self.op)
        if self.op.ndim != 1 or self.op.dtype != np.int64 or (self.op < 1).any():
            raise GraphError(f"graph arrays: op must be (N,) int64 and at least 1, got {_described(self.op)}")
        if self.features.ndim != 2 or self.features.dtype != np.float32 or len(self.features) != nodes:
            raise GraphError(f"graph arrays: features must be ({nodes}, F) float32, got {_described(self.features)}")
        if not np.isfinite(self.features).all():
            raise GraphError("graph arrays: a feature is not finite; clip or scale it first")
        if self.edges.ndim != 2 or self.edges.dtype != np.int64 or self.edges.shape[1] != 2:
            raise GraphError(f"graph arrays: edges must be (E, 2) int64, got {_described(self.edges)}")
        if self.edges.size and not (0 <= self.edges.min() and self.edges.max() < nodes):
            raise GraphError(f"graph arrays: an edge names a node that is not among the {nodes} nodes")

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.op)


def _described(array: np.ndarray) -> str:
    return f"{array.dtype} {array.shape}"
