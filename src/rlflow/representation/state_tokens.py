"""The tokens of all matches in a graph, each distinct one once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rlflow.representation.match_token import MatchToken
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location


class TokenOfMatch(NamedTuple):
    """The token of a match, and the nodes on which it depends."""

    token: MatchToken
    nodes: frozenset[int]


@dataclass(frozen=True, eq=False)
class StateTokens:
    """The M matches in a graph, in the order of rules and locations, and their T distinct tokens.

    - `tokens`: in the order in which they are met first; `counts`, (T,) int64, says how many matches have each.
    - `token_of`: (M,) int64, the place of each match's token in `tokens`.
    - `nodes`: of each match the nodes on which its token depends; `cost.dependence.EVERYWHERE` among them says that it
      depends on the whole graph.
    """

    matches: tuple[tuple[Location, Match], ...]
    tokens: tuple[MatchToken, ...]
    token_of: np.ndarray
    counts: np.ndarray
    nodes: tuple[frozenset[int], ...]

    @classmethod
    def of(cls, matches: Sequence[tuple[Location, Match]], by_match: Mapping[Match, TokenOfMatch]) -> StateTokens:
        """Put matches together with their tokens."""
        found = [by_match[match] for _, match in matches]
        distinct: dict[bytes, MatchToken] = {}
        for token, _ in found:
            distinct.setdefault(token.key, token)
        places = {key: place for place, key in enumerate(distinct)}
        token_of = np.array([places[token.key] for token, _ in found], np.int64)
        counts = np.bincount(token_of, minlength=len(distinct)).astype(np.int64)
        return cls(tuple(matches), tuple(distinct.values()), token_of, counts, tuple([nodes for _, nodes in found]))

    @cached_property
    def apart(self) -> np.ndarray:
        """(T,) int64: how many matches with each token can be taken in their order, no two of which share a node."""
        number, taken = np.zeros(len(self.tokens), np.int64), [set[int]() for _ in self.tokens]
        for place, (_, match) in zip(self.token_of.tolist(), self.matches, strict=True):
            if taken[place].isdisjoint(match.nodes):
                taken[place].update(match.nodes)
                number[place] += 1
        return number
