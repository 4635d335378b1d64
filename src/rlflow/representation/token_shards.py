"""Episodes over match tokens from several workers, or of several graphs, put together.

    one = merged([shard_of_worker_0, shard_of_worker_1])

The invariant: shards in which worker w of n has played episodes w, w + n, w + 2 n, ... become what one worker would
have collected, to the byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np

from rlflow.errors import InputError
from rlflow.representation.match_token import MatchToken
from rlflow.representation.token_rollouts import TokenEpisode, TokenRollouts, TokenState


class TokenBank:
    """Distinct tokens, told apart by their keys, in the order in which they were met."""

    def __init__(self) -> None:
        self.tokens: list[MatchToken] = []
        self.rule_of: list[str] = []
        self._places: dict[bytes, int] = {}

    @classmethod
    def of(cls, rollouts: TokenRollouts) -> TokenBank:
        """Return the bank that the tokens of rollouts were in."""
        bank = cls()
        for token, rule in zip(rollouts.tokens, rollouts.rule_of, strict=True):
            bank.place(token, rule)
        return bank

    def place(self, token: MatchToken, rule: str) -> int:
        """Return the number of a token that was met by a rule with this id."""
        place = self._places.setdefault(token.key, len(self.tokens))
        if place == len(self.tokens):
            self.tokens.append(token)
            self.rule_of.append(rule)
        self.rule_of[place] = min(self.rule_of[place], rule)
        return place


def merged(parts: Sequence[TokenRollouts]) -> TokenRollouts:
    """Return the episodes of all parts, one of each in turn; `InputError` if they differ in library or vocabulary."""
    if not parts:
        raise InputError("token rollouts: there are no parts to merge; run collect_rollouts")
    first = parts[0]
    if any((part.library_hash, part.vocabulary) != (first.library_hash, first.vocabulary) for part in parts):
        raise InputError("token rollouts: the parts were collected with different rules or vocabularies")
    bank = TokenBank()
    graphs = tuple(dict.fromkeys(name for part in parts for name in part.graphs))
    episodes = tuple(
        replace(
            episode,
            graph=graphs.index(part.graphs[episode.graph]),
            states=tuple(_renumbered(state, part, bank) for state in episode.states),
        )
        for part, episode in _in_turn(parts)
    )
    return TokenRollouts(
        tokens=tuple(bank.tokens),
        rule_of=tuple(bank.rule_of),
        episodes=episodes,
        graphs=graphs,
        vocabulary=first.vocabulary,
        library_hash=first.library_hash,
    )


def _in_turn(parts: Sequence[TokenRollouts]) -> Iterator[tuple[TokenRollouts, TokenEpisode]]:
    for episodes in zip_longest(*(part.episodes for part in parts)):
        yield from ((part, episode) for part, episode in zip(parts, episodes, strict=True) if episode is not None)


def _renumbered(state: TokenState, part: TokenRollouts, bank: TokenBank) -> TokenState:
    places = [bank.place(part.tokens[token], part.rule_of[token]) for token in state.token.tolist()]
    return replace(state, token=np.array(places, dtype=np.int64))
