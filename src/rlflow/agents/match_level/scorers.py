"""V's scores of every match in a graph, read once for all matches that look alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from rlflow.agents.match_level.token_reader import SCORES, TokenReader
from rlflow.cost.base import CostModel
from rlflow.ir.graph import Graph
from rlflow.representation.match_token import MatchToken
from rlflow.representation.price_profile import PriceProfile
from rlflow.representation.state_tokens import StateTokens
from rlflow.representation.tokeniser import Tokeniser
from rlflow.representation.vocabulary import Vocabulary
from rlflow.rules.matching.rewriter import Rewriter

_MAX_REMEMBERED = 100_000
_DECIMALS = 4  # of logits and logarithms


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of M matches, each (M,) float64.

    taken: the logit that an expert takes it; gain: the logarithm of 1 + what it leads to then; saving: what it saves by
    itself. Both in units of prices.
    """

    state: StateTokens
    taken: np.ndarray
    gain: np.ndarray
    saving: np.ndarray

    def key_of(self, number: int) -> bytes:
        """The key of the token of match `number`."""
        return self.state.tokens[int(self.state.token_of[number])].key


class Scorer(Protocol):
    """Scores all matches in a graph."""

    def of(self, graph: Graph) -> Scores: ...


MakeScorer = Callable[[Graph, Rewriter, CostModel], Scorer]
"""Makes the scorer of one optimisation from the graph that it begins at, its rewriter and its prices."""


def token_states(
    start: Graph, rewriter: Rewriter, cost_model: CostModel, vocabulary: Vocabulary | None = None
) -> Callable[[Graph], StateTokens]:
    """Return what writes the matches of graphs as tokens, in one optimisation that begins at `start`."""
    tokeniser = Tokeniser(rewriter, cost_model, vocabulary)
    return partial(tokeniser.tokens, profile=PriceProfile.of(start, tokeniser.cost_model))


class EncoderScorer:
    """Reads matches of the graphs of one optimisation, which begins at `start`.

    Readings are rounded to ten-thousandths, far below V's errors and several times what ONNX Runtime and PyTorch differ
    by where they differ most: what V considers equal is nearly always equal on every processor, and so in one order.
    """

    def __init__(self, reader: TokenReader, start: Graph, rewriter: Rewriter, cost_model: CostModel) -> None:
        self._reader = reader
        self._state_of = token_states(start, rewriter, cost_model, reader.vocabulary)
        self._told: dict[bytes, np.ndarray] = {}

    def of(self, graph: Graph) -> Scores:
        """Read all matches in a graph."""
        state = self._state_of(graph)
        taken, gain, saving = self.reading(state.tokens)[:SCORES].astype(np.float64).round(_DECIMALS)[:, state.token_of]
        return Scores(state, taken, gain, np.sinh(saving))

    def reading(self, tokens: Sequence[MatchToken]) -> np.ndarray:
        """Return what the reader reads of tokens, each of which it reads once."""
        unknown = [token for token in tokens if token.key not in self._told]
        if len(self._told) + len(unknown) > _MAX_REMEMBERED:
            self._told.clear()
            unknown = list(tokens)
        if unknown:
            columns = self._reader.read(unknown).T
            self._told |= {token.key: column for token, column in zip(unknown, columns, strict=True)}
        return np.stack([self._told[token.key] for token in tokens], axis=1) if tokens else np.zeros((SCORES, 0))
