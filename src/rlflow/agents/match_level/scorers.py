"""V's scores of every match in a graph, read once for all matches that look alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import torch

from rlflow.cost.base import CostModel
from rlflow.ir.graph import Graph
from rlflow.representation.match_token import MatchToken
from rlflow.representation.price_profile import PriceProfile
from rlflow.representation.state_tokens import StateTokens
from rlflow.representation.token_batch import TokenTable
from rlflow.representation.tokeniser import Tokeniser
from rlflow.representation.vocabulary import Vocabulary
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.match_level.model import MatchLevelModel

_MAX_REMEMBERED = 100_000


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
    """Reads matches of the graphs of one optimisation, which begins at `start`."""

    def __init__(self, model: MatchLevelModel, start: Graph, rewriter: Rewriter, cost_model: CostModel) -> None:
        self._model = model
        self._state_of = token_states(start, rewriter, cost_model, model.arguments.vocabulary)
        self._told: dict[bytes, tuple[float, float, float]] = {}

    def of(self, graph: Graph) -> Scores:
        """Read all matches in a graph."""
        state = self._state_of(graph)
        unknown = [token for token in state.tokens if token.key not in self._told]
        if len(self._told) + len(unknown) > _MAX_REMEMBERED:
            self._told.clear()
            unknown = list(state.tokens)
        self._read(unknown)
        told = np.array([self._told[token.key] for token in state.tokens], np.float64).reshape(-1, 3)
        return Scores(state, *told[state.token_of].T)

    @torch.no_grad()
    def _read(self, tokens: list[MatchToken]) -> None:
        if not tokens:
            return
        reading = self._model.encoder.read(TokenTable(tokens))
        told = torch.stack([reading.taken, reading.gain, reading.saving.sinh()], dim=1)
        for token, scores in zip(tokens, told.tolist(), strict=True):
            self._told[token.key] = tuple(scores)
