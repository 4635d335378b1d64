"""Arrays that are no graph are refused with their reason."""

import numpy as np
import pytest

from rlflow.errors import GraphError
from rlflow.representation.graph_arrays import GraphArrays

OP = np.array([1, 2], dtype=np.int64)
FEATURES = np.zeros((2, 3), dtype=np.float32)
EDGES = np.array([[0, 1]], dtype=np.int64)


def test_a_graph_is_accepted_also_without_edges() -> None:
    assert GraphArrays(OP, FEATURES, EDGES).num_nodes == 2
    GraphArrays(OP, FEATURES, np.zeros((0, 2), dtype=np.int64))


@pytest.mark.parametrize(
    ("op", "features", "edges", "reason"),
    [
        (OP.astype(float), FEATURES, EDGES, "op must be"),
        (np.array([0, 1], dtype=np.int64), FEATURES, EDGES, "at least 1"),
        (OP, FEATURES[:1], EDGES, "features must be"),
        (OP, FEATURES + np.float32("nan"), EDGES, "not finite"),
        (OP, FEATURES, EDGES.T, "edges must be"),
        (OP, FEATURES, EDGES + 1, "names a node that is not"),
        (OP, FEATURES, EDGES - 1, "names a node that is not"),
    ],
)
def test_broken_arrays_are_refused(op: np.ndarray, features: np.ndarray, edges: np.ndarray, reason: str) -> None:
    with pytest.raises(GraphError, match=reason):
        GraphArrays(op, features, edges)
