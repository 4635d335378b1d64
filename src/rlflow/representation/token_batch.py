"""Match tokens in batches: every token is two small graphs side by side, the place before the edit and after it.

Nodes near an edit are on both sides, once with the neighbours that they have and once with those that they would get.
`twin` leads from a node after the edit to itself before it:

    table = TokenTable(tokens)                     all tokens of some rollouts, end to end
    batch = table.batch(np.array([3, 17]))         two of them

The invariant: a batch says of a token the same, whichever others are in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from rlflow.representation.edit_graph import ADDED, REMOVED
from rlflow.representation.match_token import MatchToken

A = TypeVar("A")
B = TypeVar("B")
_NO_TWIN = -1


@dataclass(frozen=True)
class TokenBatch(Generic[A]):
    """T tokens with N nodes on both sides together, in arrays or in what a network reads instead of them.

    op, role (N,) int64; features (N, F), price (N,) float32; is_after (N,) bool; twin (N,) int64, -1 for a node that is
    on one side alone; token (N,) int64, to which token a node belongs; sender, receiver (E,) int64.
    """

    op: A
    role: A
    features: A
    price: A
    is_after: A
    twin: A
    token: A
    sender: A
    receiver: A
    num_tokens: int

    def mapped(self, convert: Callable[[A], B]) -> TokenBatch[B]:
        """Return the same with each array converted."""
        columns = {name: convert(value) for name, value in vars(self).items() if name != "num_tokens"}
        return TokenBatch(**columns, num_tokens=self.num_tokens)


class TokenTable:
    """Tokens end to end, from which batches are cut without looking at single tokens."""

    def __init__(self, tokens: Sequence[MatchToken]) -> None:
        sides = [_two_sides(token) for token in tokens]
        self._nodes = _Ragged([source for source, *_ in sides])
        self._twins = _Ragged([twin for _, twin, _ in sides])
        self._edges = _Ragged([edges for *_, edges in sides])
        first_node = np.cumsum([0, *(token.num_nodes for token in tokens)])[:-1]
        source = self._nodes.values + np.repeat(first_node, self._nodes.lengths)

        self._op = np.concatenate([token.op for token in tokens])[source]
        self._role = np.concatenate([token.role for token in tokens])[source]
        self._features = np.concatenate([token.features for token in tokens])[source]
        self._price = np.concatenate([token.price for token in tokens])[source]
        self._is_after = np.concatenate([is_after for token in tokens for is_after in (_is_after(token),)])

    def __len__(self) -> int:
        return len(self._nodes.lengths)

    def batch(self, chosen: np.ndarray) -> TokenBatch[np.ndarray]:
        """The tokens `chosen` (T,), in that order."""
        nodes, token = self._nodes.rows(chosen)
        edges, of_edge = self._edges.rows(chosen)
        sizes = self._nodes.lengths[chosen]
        first = np.cumsum(sizes) - sizes
        twin = self._twins.values[nodes]
        wiring = self._edges.values[edges] + first[of_edge][:, None]
        return TokenBatch(
            op=self._op[nodes],
            role=self._role[nodes],
            features=self._features[nodes],
            price=self._price[nodes],
            is_after=self._is_after[nodes],
            twin=np.where(twin == _NO_TWIN, _NO_TWIN, twin + first[token]),
            token=token,
            sender=np.ascontiguousarray(wiring[:, 0]),
            receiver=np.ascontiguousarray(wiring[:, 1]),
            num_tokens=len(chosen),
        )


class _Ragged:
    """Arrays of different lengths, end to end."""

    def __init__(self, parts: Sequence[np.ndarray]) -> None:
        self.values = np.concatenate(parts)
        self.lengths = np.array([len(part) for part in parts])
        self._first = np.cumsum(self.lengths) - self.lengths

    def rows(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places of the chosen parts' entries in `values`, and of each which of the chosen it belongs to."""
        lengths = self.lengths[chosen]
        owner = np.repeat(np.arange(len(chosen)), lengths)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return self._first[chosen][owner] + within, owner


def _two_sides(token: MatchToken) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The token's nodes before the edit, then those after it; the twins of these; and the edges of both sides."""
    before, after = np.flatnonzero(token.role != ADDED), np.flatnonzero(token.role != REMOVED)
    place_before, place_after = (np.full(token.num_nodes, _NO_TWIN) for _ in range(2))
    place_before[before] = np.arange(len(before))
    place_after[after] = len(before) + np.arange(len(after))
    twin = np.concatenate([np.full(len(before), _NO_TWIN), place_before[after]])
    edges = np.concatenate([place_before[token.edges_before], place_after[token.edges_after]])
    return np.concatenate([before, after]), twin, edges


def _is_after(token: MatchToken) -> np.ndarray:
    before, after = int((token.role != ADDED).sum()), int((token.role != REMOVED).sum())
    return np.repeat([False, True], [before, after])
