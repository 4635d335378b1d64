"""A match as arrays: the small graph around its edit, before the edit and after it, with what its nodes cost.

Twelve layers of a model are alike, so a match in one has the same token as those in all others, however the nodes are
numbered and by whichever rule it was found: what a token tells is what the edit does, never which rule does it.

The invariant: two tokens have the same key exactly if their arrays are the same, and these do not depend on the order
in which the nodes were given, but for nodes that refining colours (Weisfeiler and Leman, 1968) cannot tell apart and
that yet are none of a symmetry.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Annotated, Any

import numpy as np

from rlflow.errors import GraphError
from rlflow.representation.edit_graph import ADDED, FAR, REMOVED
from rlflow.representation.packing import Along

_KEY_BYTES = 16
_LARGEST = float(np.finfo(np.float32).max)
_WAYS = 4  # of two nodes to be wired: either may send to the other, before the edit and after it


@dataclass(frozen=True, eq=False)
class MatchToken:
    """The graph of N nodes around an edit, with F features, E edges before the edit and E' after it.

    - `op`: (N,) int64, index among the operators of a `Vocabulary`, 0 is padding (never a node).
    - `role`: (N,) int64, one of `edit_graph.REMOVED`, `ADDED`, `NEAR`, `FAR`, in this order.
    - `features`: (N, F) float32, a column for each feature of the vocabulary.
    - `price`: (N,) float32, in the unit of a `PriceProfile`; of added nodes, which have none yet, an estimate.
    - `edges_before` (E, 2) and `edges_after` (E', 2): int64, sender and receiver; no added node is in the first, no
      removed one in the second.
    - `key`: a digest of the arrays, the same in every process.

    `GraphError` if the arrays do not fit together.
    """

    op: Annotated[np.ndarray, Along("nodes")]
    role: Annotated[np.ndarray, Along("nodes")]
    features: Annotated[np.ndarray, Along("nodes")]
    price: Annotated[np.ndarray, Along("nodes")]
    edges_before: Annotated[np.ndarray, Along("before")]
    edges_after: Annotated[np.ndarray, Along("after")]
    key: bytes

    def __post_init__(self) -> None:
        nodes = len(self.op)
        _check("op", self.op, (nodes,), np.int64, low=1)
        _check("role", self.role, (nodes,), np.int64, low=REMOVED, high=FAR)
        _check("features", self.features, (nodes, *self.features.shape[1:2]), np.float32)
        _check("price", self.price, (nodes,), np.float32, low=0)
        for name, edges, absent in (("before", self.edges_before, ADDED), ("after", self.edges_after, REMOVED)):
            _check(f"edges_{name}", edges, (len(edges), 2), np.int64, low=0, high=nodes - 1)
            if (self.role[edges] == absent).any():
                raise GraphError(f"match token: edges_{name} name a node that is not there {name} the edit")

    @classmethod
    def of(
        cls,
        op: Sequence[int],
        role: Sequence[int],
        features: np.ndarray,
        price: np.ndarray,
        before: Sequence[tuple[int, int]],
        after: Sequence[tuple[int, int]],
    ) -> MatchToken:
        """Make the token of a small graph whose nodes stand in any order."""
        rows = [(r, o, *f, p) for r, o, f, p in zip(role, op, features.tolist(), price.tolist(), strict=True)]
        order = _canonical_order(rows, (before, after))
        place = {node: number for number, node in enumerate(order)}
        return cls.of_arrays(
            np.array(op, np.int64)[order],
            np.array(role, np.int64)[order],
            np.ascontiguousarray(features[order]),
            price[order],
            _edges(before, place),
            _edges(after, place),
        )

    @classmethod
    def of_arrays(
        cls,
        op: np.ndarray,
        role: np.ndarray,
        features: np.ndarray,
        price: np.ndarray,
        edges_before: np.ndarray,
        edges_after: np.ndarray,
    ) -> MatchToken:
        """Make the token of arrays that are in order already, those of a token that was stored."""
        key = _digest((op, role, features, price, edges_before, edges_after))
        return cls(op, role, features, price, edges_before, edges_after, key)

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.op)


def _edges(pairs: Sequence[tuple[int, int]], place: Mapping[int, int]) -> np.ndarray:
    """The edges between nodes at their new places, in order."""
    moved = sorted([(place[sender], place[receiver]) for sender, receiver in pairs])
    return np.array(moved, np.int64).reshape(-1, 2)


def _digest(arrays: Sequence[np.ndarray]) -> bytes:
    digest = blake2b(digest_size=_KEY_BYTES)
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.digest()


def _check(
    name: str, array: np.ndarray, shape: tuple[int, ...], dtype: Any, low: float = -_LARGEST, high: float = _LARGEST
) -> None:
    """Raise `GraphError` if an array has another shape or type, or a number that is out of range or none."""
    if array.shape != shape or array.dtype != dtype:
        raise GraphError(f"match token: {name} must be {np.dtype(dtype)} {shape}, got {array.dtype} {array.shape}")
    if array.size and not (low <= array.min() and array.max() <= high):
        raise GraphError(f"match token: {name} must be from {low:g} to {high:g}, got {array.min()} to {array.max()}")


def _canonical_order(rows: Sequence[Hashable], sides: Sequence[Sequence[tuple[int, int]]]) -> list[int]:
    """Return the nodes by their rows, and nodes of one row by what is wired to them.

    Where refining leaves several nodes of one colour, the first of them gets one of its own: which one that is does not
    show if they are alike by a symmetry.
    """
    wired: list[list[tuple[int, int]]] = [[] for _ in rows]
    for number, edges in enumerate(sides):
        for sender, receiver in edges:
            wired[receiver].append((2 * number, sender))
            wired[sender].append((2 * number + 1, receiver))
    colours = _ranks(rows)
    while True:
        colours = _refined(colours, wired)
        tied = next((one for one, next_one in pairwise(sorted(colours)) if one == next_one), None)
        if tied is None:
            return sorted(range(len(rows)), key=colours.__getitem__)
        first = colours.index(tied)
        colours = _ranks([2 * colour - (node == first) for node, colour in enumerate(colours)])


def _refined(colours: list[int], wired: Sequence[Sequence[tuple[int, int]]]) -> list[int]:
    """Tell nodes of one colour apart by how they are wired to which colours, until that tells no more."""
    while len(set(colours)) < len(colours):
        signatures = [
            (colour, *sorted([_WAYS * colours[i] + way for way, i in neighbours]))
            for colour, neighbours in zip(colours, wired, strict=True)
        ]
        finer = _ranks(signatures)
        if max(finer) == max(colours):
            break
        colours = finer
    return colours


def _ranks(keys: Sequence[Any]) -> list[int]:
    """Number keys by their order, equal ones alike."""
    rank = {key: number for number, key in enumerate(sorted(set(keys)))}
    return [rank[key] for key in keys]
