"""Distances between matches: the number of edges between the nodes that they take.

A rewrite ends matches that share a node with it, and changes what others see next to them. Two matches that share a
node are at distance 0, in x -> Relu -> Exp a match of Relu and one of Exp are at 1. Matches come in groups; between
groups the least distance counts.

    between = MatchDistances(graph, [match.nodes for match in matches], groups)
    between.groups_apart()          from each group to each
    between.apart_from([7])         from the eighth match to each group

The invariant: distances are the same in both directions, and 0 from a group to itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy import sparse

from rlflow.ir.graph import Graph
from rlflow.representation.token_rollouts import FAR_AWAY


class MatchDistances:
    """Distances between M matches in a graph, told by their nodes; groups (M,) int64 are numbered from 0 to G - 1."""

    def __init__(self, graph: Graph, matches: Sequence[Sequence[int]], groups: np.ndarray) -> None:
        self._graph, self._matches, self._groups = graph, matches, groups
        self._place = {identifier: number for number, identifier in enumerate(graph.order)}
        self._number = int(groups.max(initial=-1)) + 1

    def groups_apart(self) -> np.ndarray:
        """(G, G) int8, the least distance between a match of one group and one of the other."""
        group, node = self._taken
        own = sparse.csr_array((np.ones(len(node), np.int32), (group, node)), shape=(self._number, len(self._place)))
        result = np.full((self._number, self._number), FAR_AWAY, dtype=np.int8)
        np.fill_diagonal(result, 0)
        takers, reached = own.T.tocsr(), own
        for distance in range(FAR_AWAY):
            near = (reached @ takers).toarray() > 0
            result[near & (result == FAR_AWAY)] = distance
            if distance + 1 < FAR_AWAY:
                reached = reached @ self._neighbours
                reached.data[:] = 1
        return result

    def apart_from(self, matches: Sequence[int]) -> np.ndarray:
        """(G,) int8, the least distance between one of some matches and any of each group."""
        from_match = np.full(len(self._place), FAR_AWAY, dtype=np.int8)
        reached = np.zeros(len(self._place), dtype=np.int32)
        reached[[self._place[i] for match in matches for i in self._matches[match] if i in self._place]] = 1
        for distance in range(FAR_AWAY):
            from_match[(reached > 0) & (from_match == FAR_AWAY)] = distance
            reached = np.minimum(self._neighbours @ reached, 1)
        group, node = self._taken
        result = np.full(self._number, FAR_AWAY, dtype=np.int8)
        np.minimum.at(result, group, from_match[node])
        result[self._groups[list(matches)]] = 0
        return result

    @cached_property
    def _taken(self) -> tuple[np.ndarray, np.ndarray]:
        """A group and a node that one of its matches takes, each pair once."""
        pairs = {
            (group, self._place[i])
            for group, nodes in zip(self._groups.tolist(), self._matches, strict=True)
            for i in nodes
            if i in self._place
        }
        group, node = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T
        return group, node

    @cached_property
    def _neighbours(self) -> sparse.csr_array:
        """(N, N) int32, how many edges lie between running nodes; each is its own neighbour."""
        place, nodes = self._place, self._graph.nodes
        edges = [(place[source], at) for i, at in place.items() for source in nodes[i].sources if source in place]
        sender, receiver = np.array(edges, dtype=np.int64).reshape(-1, 2).T
        itself = np.arange(len(place))
        rows, columns = np.concatenate([sender, receiver, itself]), np.concatenate([receiver, sender, itself])
        return sparse.csr_array((np.ones(len(rows), np.int32), (rows, columns)), shape=(len(place), len(place)))
