"""How far matches lie from each other: the number of edges between the nodes that they take.

A rewrite ends matches that share a node with it, and changes what others see next to them. Two matches that share a
node are at distance 0, in x -> Relu -> Exp a match of Relu and one of Exp are at 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from rlflow.ir.graph import Graph
from rlflow.representation.token_rollouts import FAR_AWAY
from rlflow.rules.matching.match import Match


def distances(graph: Graph, matches: Sequence[Match], groups: np.ndarray) -> np.ndarray:
    """Return (G, G) int8, the least distance between a match of one group and one of the other.

    groups (M,) int64: the group of each match, 0 to G - 1. A group is at distance 0 from itself.
    """
    place = {identifier: number for number, identifier in enumerate(graph.order)}
    number = int(groups.max(initial=-1)) + 1
    taken = [
        (group, place[i])
        for group, match in zip(groups.tolist(), matches, strict=True)
        for i in match.nodes
        if i in place
    ]
    rows, columns = np.array(taken, dtype=np.int64).reshape(-1, 2).T
    own = sparse.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=(number, len(place)))
    step = _neighbours(graph, place)

    result = np.full((number, number), FAR_AWAY, dtype=np.int8)
    reached = own
    for distance in range(FAR_AWAY):
        near = (reached @ own.T).toarray() > 0
        result[near & (result == FAR_AWAY)] = distance
        reached = reached @ step
    return result


def _neighbours(graph: Graph, place: dict[int, int]) -> sparse.csr_array:
    """A running node's neighbours and itself, (N, N) bool."""
    edges = [(place[source], at) for i, at in place.items() for source in graph.nodes[i].sources if source in place]
    sender, receiver = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    itself = np.arange(len(place))
    rows, columns = np.concatenate([sender, receiver, itself]), np.concatenate([receiver, sender, itself])
    return sparse.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=(len(place), len(place)))
